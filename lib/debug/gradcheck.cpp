#include <reel/debug/gradcheck.h>

#include <algorithm>
#include <cmath>

#include <reel/nn/functional_call.h>
#include <reel/ops.h>
#include <reel/tape.h>

#include "../core/op_error.h"
#include "../ops/if_needed.h"
#include "element_index.h"

namespace reel::debug {

using namespace detail;

namespace {

// Row-major copies that the check may change.
std::vector<Tensor> own_copies(const char* op, std::span<const Tensor> inputs, Location where) {
  std::vector<Tensor> copies;
  for (const Tensor& input : inputs) {
    if (!input.defined() || input.dtype() != DType::f64)
      fail<DTypeError>(op, where, "takes f64 inputs, because differences of f32 are too coarse, not {}",
                       input.defined() ? describe(input) : "an undefined tensor");
    copies.push_back(copy(stop_gradient(input)));
  }
  return copies;
}

// x[place] = value, on any device.
void put(Tensor& x, std::int64_t place, double value) {
  if (x.device() == cpu) {
    x.write<double>()[place] = value;
    return;
  }
  NoRecord pause;
  Tensor here = to_if_needed(x, cpu);
  here.write<double>()[place] = value;
  copy_(x, to_if_needed(here, x.device()));
}

std::vector<double> values_of(const Tensor& x) { return x.to_vector<double>(); }

// For each input, the rows of the Jacobian as computed by a tape: one row of the input's size for each output element.
std::vector<std::vector<double>> tape_jacobians(const char* op, const Differentiable& f,
                                                const std::vector<Tensor>& inputs, Tensor& output, Location where) {
  std::vector<std::vector<double>> rows(inputs.size());
  Tape tape({.persistent = true});
  for (const Tensor& input : inputs) tape.watch(input);
  output = f(inputs);
  if (output.dtype() != DType::f64) fail<DTypeError>(op, where, "the function must give f64, not {}", describe(output));
  for (std::int64_t i = 0; i < output.numel(); ++i) {
    Tensor seed = zeros_like(output);
    put(seed, i, 1);
    std::vector<Tensor> gradients = tape.gradient(output, inputs, {.seed = seed, .unconnected = Unconnected::zeros});
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      std::vector<double> row = values_of(gradients[k]);
      rows[k].insert(rows[k].end(), row.begin(), row.end());
    }
  }
  return rows;
}

struct Worst {
  double excess = 0;  // beyond the tolerance
  std::size_t input = 0;
  std::int64_t element = 0, output = 0;
  double from_tape = 0, from_difference = 0;
};

std::string input_name(const std::vector<std::string>& names, std::size_t input) {
  if (input < names.size()) return names[input];
  return names.empty() ? fmt::format("input {}", input) : std::string("the seed");
}

// `names`: those of the inputs; none if they have no other than their numbers.
GradcheckReport check(const char* op, const Differentiable& f, std::span<const Tensor> inputs,
                      const GradcheckOptions& options, Location where, const std::vector<std::string>& names) {
  // Tensors that a tape watches cannot be overwritten while an outer tape is open.
  std::vector<Tensor> watched = own_copies(op, inputs, where), points = own_copies(op, inputs, where);
  Tensor output;
  std::vector<std::vector<double>> jacobians = tape_jacobians(op, f, watched, output, where);
  NoRecord pause;
  Worst worst;
  std::int64_t compared = 0, wrong = 0;
  for (std::size_t k = 0; k < points.size(); ++k) {
    std::int64_t size = points[k].numel();
    for (std::int64_t j = 0; j < size; ++j) {
      double x = values_of(points[k])[static_cast<std::size_t>(j)];
      double step = options.step * std::max(1.0, std::abs(x));
      auto value_at = [&](double moved) {
        put(points[k], j, moved);
        return values_of(f(points));
      };
      std::vector<double> above = value_at(x + step), below = value_at(x - step);
      put(points[k], j, x);
      for (std::int64_t i = 0; i < output.numel(); ++i) {
        auto at = static_cast<std::size_t>(i);
        double difference = (above[at] - below[at]) / (2 * step);
        double tape = jacobians[k][static_cast<std::size_t>(i * size + j)];
        double excess = std::abs(tape - difference) - options.absolute_tolerance -
                        options.relative_tolerance * std::abs(difference);
        ++compared;
        if (excess <= 0) continue;
        ++wrong;
        if (std::isnan(excess)) excess = HUGE_VAL;
        if (excess > worst.excess) worst = {excess, k, j, i, tape, difference};
      }
    }
  }
  if (wrong == 0) return {true, fmt::format("{}: all {} derivatives agree", op, compared)};
  return {false, fmt::format("{}: {} of {} derivatives disagree; worst: output{} by {}{} at {:.6g}: the tape says "
                             "{:.10g}, the difference {:.10g}",
                             op, wrong, compared, index_of(worst.output, output.shape()),
                             input_name(names, worst.input), index_of(worst.element, points[worst.input].shape()),
                             values_of(points[worst.input])[static_cast<std::size_t>(worst.element)], worst.from_tape,
                             worst.from_difference)};
}

GradcheckReport check_second_order(const Differentiable& f, std::span<const Tensor> inputs,
                                   const GradcheckOptions& options, Location where,
                                   const std::vector<std::string>& names) {
  std::vector<Tensor> points = own_copies("gradgradcheck", inputs, where);
  // A seed without symmetry, so that no two terms cancel.
  Tensor shape_of_output = [&] {
    NoRecord pause;
    return f(points);
  }();
  Tensor seed = zeros_like(shape_of_output);
  for (std::int64_t i = 0; i < seed.numel(); ++i) put(seed, i, std::sin(1.7 * static_cast<double>(i) + 0.6) + 0.2);
  points.push_back(seed);

  Differentiable gradients = [&](std::span<const Tensor> all) {
    std::vector<Tensor> found;
    {
      Tape tape;
      std::span<const Tensor> arguments = all.first(all.size() - 1);
      for (const Tensor& argument : arguments) tape.watch(argument);
      Tensor output = f(arguments);
      found = tape.gradient(output, arguments, {.seed = all.back(), .unconnected = Unconnected::zeros});
    }
    std::vector<Tensor> flat;
    for (const Tensor& gradient : found) flat.push_back(reshape(gradient, {-1}));
    return concat(flat);
  };
  return check("gradgradcheck", gradients, points, options, where, names);
}

// A model as a function of its parameters.
struct ParameterFunction {
  const nn::Module& model;
  const std::function<Tensor()>& loss;
  std::vector<NamedTensor> parameters = {};
  std::vector<std::string> names = {};
  std::vector<Tensor> inputs = {};

  ParameterFunction(const char* op, const nn::Module& model, const std::function<Tensor()>& loss, Location where)
      : model(model), loss(loss) {
    for (const NamedTensor& named : model.named_parameters()) {
      if (!named.tensor.is_parameter()) continue;
      if (named.tensor.dtype() != DType::f64)
        fail<DTypeError>(op, where,
                         "the parameter '{}' is {}; differences of f32 are too coarse: convert the model with "
                         "model.to(DType::f64) first",
                         named.name, describe(named.tensor));
      parameters.push_back(named);
      names.push_back(named.name);
      inputs.push_back(named.tensor);
    }
    if (inputs.empty()) fail<Error>(op, where, "{} has no parameters to train", model.type_name());
  }

  Tensor operator()(std::span<const Tensor> values) const {
    std::vector<NamedTensor> replaced = parameters;
    for (std::size_t i = 0; i < replaced.size(); ++i) replaced[i].tensor = values[i];
    nn::ReplacedParameters scope(model, replaced);
    return loss();
  }
};

}  // namespace

GradcheckReport gradcheck(const Differentiable& f, std::span<const Tensor> inputs, GradcheckOptions options,
                          Location where) {
  return check("gradcheck", f, inputs, options, where, {});
}

GradcheckReport gradgradcheck(const Differentiable& f, std::span<const Tensor> inputs, GradcheckOptions options,
                              Location where) {
  return check_second_order(f, inputs, options, where, {});
}

GradcheckReport gradcheck(const nn::Module& model, const std::function<Tensor()>& loss, GradcheckOptions options,
                          Location where) {
  ParameterFunction f("gradcheck", model, loss, where);
  return check("gradcheck", Differentiable(std::cref(f)), f.inputs, options, where, f.names);
}

GradcheckReport gradgradcheck(const nn::Module& model, const std::function<Tensor()>& loss, GradcheckOptions options,
                              Location where) {
  ParameterFunction f("gradgradcheck", model, loss, where);
  return check_second_order(Differentiable(std::cref(f)), f.inputs, options, where, f.names);
}

}  // namespace reel::debug
