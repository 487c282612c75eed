#include <reel/optim/lbfgs.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <reel/ops.h>
#include <reel/tape.h>

#include "../core/device/device_module.h"
#include "../core/op_error.h"
#include "../core/storage.h"
#include "../kernels/kernel_table.h"
#include "../ops/if_needed.h"
#include "line_search.h"
#include "option_checks.h"
#include "scalars_of.h"
#include "state_reader.h"

namespace reel::optim {

using namespace detail;

namespace {

// Writes values to a parameter, as an overwrite.
void put(const Tensor& parameter, const Tensor& values, Location where) {
  run_delayed(context());
  Storage& storage = *parameter.body().storage;
  prepare_on_device(parameter.body(), true);
  kernels(parameter.device()).copy(parameter.body(), values.body());
  storage.overwritten(context().call_site(where));
}

}  // namespace

LBFGS::LBFGS(std::vector<Tensor> parameters, LBFGSOptions options, Location where)
    : Optimiser("LBFGS"), options_(options) {
  check_not_negative(name(), "learning rate", options.learning_rate, where);
  check_not_negative(name(), "tolerance of gradients", options.tolerance_gradient, where);
  check_not_negative(name(), "tolerance of changes", options.tolerance_change, where);
  if (options.max_iterations < 1)
    fail<Error>(name(), where, "at least one iteration a step is needed, not {}", options.max_iterations);
  if (options.max_evaluations < 0)
    fail<Error>(name(), where, "the number of evaluations {} is not 0 or more", options.max_evaluations);
  if (options.history_size < 1)
    fail<Error>(name(), where, "a history of at least one change is needed, not {}", options.history_size);
  if (options.max_evaluations == 0) {
    // Five quarters of the iterations, which may overflow.
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    std::int64_t quarter = options.max_iterations / 4;
    options_.max_evaluations = options.max_iterations > most - quarter ? most : options.max_iterations + quarter;
  }
  add_parameters(std::move(parameters), 0, where);
  for (const Tensor& parameter : this->parameters()) {
    size_ += parameter.numel();
    if (parameter.dtype() == DType::f64) dtype_ = DType::f64;
  }
}

double LBFGS::momentum_of(std::size_t) const { return std::numeric_limits<double>::quiet_NaN(); }

void LBFGS::make_step(Location where) {
  fail<Error>(name(), where, "it needs the loss at several places: call step with a function that computes it");
}

// The values of all parameters, or all gradients, concatenated.
Tensor LBFGS::flat(bool gradients) const {
  std::vector<Tensor> parts;
  for (const Tensor& parameter : parameters()) {
    Tensor part = stop_gradient(parameter);
    if (gradients) {
      Tensor gradient = parameter.is_parameter() ? parameter.grad() : Tensor();
      part = gradient.defined() ? gradient : zeros_like(part);
    }
    parts.push_back(to_if_needed(reshape(contiguous_if_needed(part), {parameter.numel()}), dtype_));
  }
  if (parts.empty()) return zeros({0}, {.dtype = dtype_});
  return copy(concat(parts));
}

/// The iterations of one step.
class LBFGS::Iterations {
 public:
  Iterations(LBFGS& optimiser, const std::function<double()>& loss, Location where)
      : optimiser_(optimiser), options_(optimiser.options_), loss_(loss), where_(where) {}

  double run() {
    check_parameters();
    evaluate();
    double first = value_;
    if (optimiser_.size_ == 0) return first;
    if (!std::isfinite(value_) || !std::isfinite(steepest()))
      fail<Error>(optimiser_.name(), where_, "the loss {}, or its gradient, is not finite where the parameters are",
                  value_);
    for (std::int64_t i = 1; steepest() > options_.tolerance_gradient; ++i)
      if (!iterate(i == options_.max_iterations) || evaluations_ >= options_.max_evaluations) break;
    return first;
  }

 private:
  void check_parameters() const {
    for (const Tensor& parameter : optimiser_.parameters())
      if (Location replaced_at = parameter.body().leaf->replaced_at; replaced_at.file)
        fail<Error>(optimiser_.name(), where_,
                    "a parameter {} is its module's no more: another tensor took its place at {}; make the optimiser "
                    "after that",
                    describe(parameter), to_string(replaced_at));
  }

  // Computes the loss and its gradient at the present parameters. Only this function runs the caller's code.
  void evaluate() {
    optimiser_.zero_grad();
    value_ = loss_();
    ++evaluations_;
    NoRecord pause;
    CallerScope caller(where_);
    gradient_ = optimiser_.flat(true);
  }

  double steepest() const {
    NoRecord pause;
    return largest(gradient_);
  }

  // Moves the parameters to w + t d.
  void move_to(const Tensor& start, double length) {
    NoRecord pause;
    CallerScope caller(where_);
    Tensor place = length == 0 ? start : start + optimiser_.direction_ * length;
    std::int64_t offset = 0;
    for (const Tensor& parameter : optimiser_.parameters()) {
      Tensor values = to_if_needed(slice(place, 0, offset, offset + parameter.numel()), parameter.dtype());
      offset += parameter.numel();
      if (!parameter.is_parameter()) continue;  // frozen
      put(parameter, reshape(values, parameter.shape()), where_);
    }
  }

  // Returns false if the search has ended.
  bool iterate(bool last) {
    Tensor start;
    double length, slope;
    {
      NoRecord pause;
      CallerScope caller(where_);
      choose_direction();
      optimiser_.gradient_ = gradient_;
      length = options_.learning_rate;
      if (optimiser_.iterations_ == 1) length *= std::min(1.0, 1 / sum(abs(gradient_)).item());
      slope = dot(gradient_, optimiser_.direction_);
      start = optimiser_.flat(false);
    }
    if (slope > -options_.tolerance_change) {
      optimiser_.length_ = length;
      return false;
    }
    double before = value_;
    try {
      optimiser_.length_ = options_.line_search ? search(start, length, slope) : length;
      if (!options_.line_search) {
        move_to(start, length);
        if (!last) evaluate();
      }
    } catch (...) {
      move_to(start, 0);
      optimiser_.length_ = 0;
      throw;
    }
    if (last) return false;
    NoRecord pause;
    CallerScope caller(where_);
    return largest(gradient_) > options_.tolerance_gradient &&
           largest(optimiser_.direction_ * optimiser_.length_) > options_.tolerance_change &&
           std::abs(value_ - before) >= options_.tolerance_change;
  }

  double search(const Tensor& start, double first_length, double slope) {
    double reach = [&] {
      NoRecord pause;
      return largest(optimiser_.direction_);
    }();
    LineSearch found = search_line(
        [&](double length) -> LinePoint {
          move_to(start, length);
          evaluate();
          NoRecord pause;
          return {length, value_, dot(gradient_, optimiser_.direction_), gradient_};
        },
        {0, value_, slope, gradient_}, first_length, options_.tolerance_change / reach);
    move_to(start, found.point.length);
    value_ = found.point.value;
    gradient_ = found.point.gradient;
    return found.point.length;
  }

  // Computes d = −H g by the two-loop recursion.
  void choose_direction() {
    if (optimiser_.iterations_++ == 0) {
      optimiser_.direction_ = -gradient_;
      return;
    }
    learn_curvature();
    auto& changes = optimiser_.changes_;
    std::vector<double> shares(changes.size());
    Tensor d = -gradient_;
    for (std::size_t i = changes.size(); i-- > 0;) {
      shares[i] = dot(changes[i].position, d) * changes[i].inverse_product;
      d = d - changes[i].gradient * shares[i];
    }
    d = d * optimiser_.scale_;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      double share = dot(changes[i].gradient, d) * changes[i].inverse_product;
      d = d + changes[i].position * (shares[i] - share);
    }
    optimiser_.direction_ = d;
  }

  void learn_curvature() {
    Tensor y = gradient_ - optimiser_.gradient_, s = optimiser_.direction_ * optimiser_.length_;
    double product = dot(y, s);
    if (!(product > 1e-10)) return;  // almost no curvature
    auto& changes = optimiser_.changes_;
    if (static_cast<std::int64_t>(changes.size()) == options_.history_size) changes.pop_front();
    changes.push_back({s, y, 1 / product});
    optimiser_.scale_ = product / dot(y, y);
  }

  LBFGS& optimiser_;
  const LBFGSOptions& options_;
  const std::function<double()>& loss_;
  Location where_;
  double value_ = 0;
  Tensor gradient_;
  std::int64_t evaluations_ = 0;
};

double LBFGS::minimise(const std::function<double()>& loss, Location where) {
  if (Listener* listener = context().listener) listener->updating(parameters());
  double value = Iterations(*this, loss, where).run();
  if (Listener* listener = context().listener) listener->updated(parameters());
  return value;
}

void LBFGS::add_state(std::vector<NamedTensor>& state) const {
  state.push_back({"optimiser", text_tensor(name())});
  state.push_back({"iterations", tensor({iterations_})});
  add_rates(state);
  if (iterations_ == 0) return;
  state.push_back({"length", tensor({length_})});
  state.push_back({"scale", tensor({scale_})});
  state.push_back({"direction", copy(direction_)});
  state.push_back({"gradient", copy(gradient_)});
  std::vector<Tensor> positions, gradients;
  for (const Change& change : changes_) {
    positions.push_back(change.position);
    gradients.push_back(change.gradient);
  }
  if (changes_.empty()) return;
  state.push_back({"position_changes", stack(positions)});
  state.push_back({"gradient_changes", stack(gradients)});
}

void LBFGS::take_state(std::span<const NamedTensor> state, Location where) {
  StateReader reader(name(), state, where);
  check_kind(reader, where);
  auto iterations = reader.number<std::int64_t>("iterations");
  Rate rate = read_rates(reader, where)[0];
  if (iterations < 0) fail<Error>(name(), where, "the state's 'iterations' is {}", iterations);
  double length = 0, scale = 1;
  Tensor direction, gradient;
  std::deque<Change> changes;
  if (iterations > 0) {
    length = reader.number<double>("length");
    scale = reader.number<double>("scale");
    direction = copy(reader.find("direction", {size_}, dtype_));
    gradient = copy(reader.find("gradient", {size_}, dtype_));
  }
  if (iterations > 0 && reader.has("position_changes")) {
    std::int64_t count = reader.rows("position_changes");
    const Tensor& positions = reader.find("position_changes", {count, size_}, dtype_);
    const Tensor& gradients = reader.find("gradient_changes", {count, size_}, dtype_);
    if (count > options_.history_size)
      fail<Error>(name(), where, "the state has {} changes, more than the history of {}", count, options_.history_size);
    for (std::int64_t i = 0; i < count; ++i) {
      Tensor s = copy(select(positions, 0, i)), y = copy(select(gradients, 0, i));
      changes.push_back({s, y, 1 / dot(y, s)});
    }
  }
  reader.finish();
  iterations_ = iterations;
  put_rate_parts(0, rate);
  length_ = length;
  scale_ = scale;
  direction_ = direction;
  gradient_ = gradient;
  changes_ = std::move(changes);
}

}  // namespace reel::optim
