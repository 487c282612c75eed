#include "ops/table/row_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace reel_test {

using namespace reel;

namespace {

// A gradient for y without symmetry, in y's dtype.
Tensor seed_for(const Tensor& y) {
  Tensor wide = zeros(y.shape(), {.dtype = f64});
  auto values = wide.write<double>();
  for (std::int64_t i = 0; i < wide.numel(); ++i) values[i] = std::cos(1.3 * static_cast<double>(i) + 0.4);
  return to(to(wide, y.dtype()), y.device());
}

std::int64_t floating_elements(const Row& row) {
  std::int64_t count = 0;
  for (const Input& input : row.inputs)
    if (input.takes_row_dtype()) count += input.shape.numel();
  return count;
}

template <class Check>
std::string fault_by_differences(const Row& row, Check check) {
  std::vector<Tensor> inputs = draw_inputs(row, f64, table_seed), x = floating_inputs(row, inputs);
  debug::GradcheckReport report = check(of_floating_inputs(row, inputs), x);
  return report.agrees ? "" : report.text;
}

}  // namespace

Arrays arrays_of(std::span<const Tensor> tensors) {
  Arrays arrays;
  for (const Tensor& tensor : tensors) arrays.push_back(array_of(tensor));
  return arrays;
}

std::int64_t elements(std::span<const Tensor> tensors) {
  std::int64_t count = 0;
  for (const Tensor& tensor : tensors) count += tensor.numel();
  return count;
}

double distance(const Tensor& a, const Tensor& b) {
  Array left = array_of(a), right = array_of(b);
  double apart = 0, largest = 1;
  for (std::size_t i = 0; i < left.values.size(); ++i) {
    double difference = std::abs(left.values[i] - right.values[i]);
    if (std::isnan(difference)) return difference;
    apart = std::max(apart, difference);
    largest = std::max(largest, std::abs(right.values[i]));
  }
  return apart / largest;
}

std::vector<Tensor> floating_inputs(const Row& row, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> floating;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (row.inputs[i].takes_row_dtype()) floating.push_back(inputs[i]);
  return floating;
}

Function of_floating_inputs(const Row& row, const std::vector<Tensor>& inputs) {
  return [&](std::span<const Tensor> floating) {
    std::vector<Tensor> all = inputs;
    std::size_t next = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (row.inputs[i].takes_row_dtype()) all[i] = floating[next++];
    return row.run(all);
  };
}

std::vector<Tensor> gradients(const Function& f, const std::vector<Tensor>& x) {
  Tape tape;
  for (const Tensor& input : x) tape.watch(input);
  Tensor y = f(x);
  return tape.gradient(y, x, {.seed = seed_for(y), .unconnected = Unconnected::zeros});
}

std::string forward_fault(const Row& row, DType dtype) {
  std::vector<Tensor> inputs = draw_inputs(row, dtype, table_seed);
  Arrays before = arrays_of(inputs);
  std::string fault = mismatch(row, row.run(inputs), row.reference(before));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (array_of(inputs[i]).values != before[i].values) fault += fmt::format(" input {} was changed", i);
  return fault;
}

bool checks_gradient(const Row& row) { return row.differentiable && floating_elements(row) <= 300; }

bool checks_second_order(const Row& row) { return row.differentiable && floating_elements(row) <= 100; }

std::string gradient_fault(const Row& row) {
  return fault_by_differences(row, [](const Function& f, const auto& x) { return debug::gradcheck(f, x); });
}

std::string second_order_fault(const Row& row) {
  return fault_by_differences(row, [](const Function& f, const auto& x) { return debug::gradgradcheck(f, x); });
}

std::string narrow_gradient_fault(const Row& row) {
  std::vector<Tensor> inputs = draw_inputs(row, f32, table_seed), x = floating_inputs(row, inputs), wide;
  for (const Tensor& input : x) wide.push_back(to(input, f64));
  Function f = of_floating_inputs(row, inputs);
  std::vector<Tensor> found = gradients(f, x), expected = gradients(f, wide);
  std::string fault;
  // Sums of at most 70 products, each rounded to half a unit, of numbers that may be 2 units off themselves.
  for (std::size_t i = 0; i < x.size(); ++i) {
    double apart = distance(found[i], expected[i]) / last_place(f32);
    if (found[i].dtype() != f32) fault += fmt::format("gradient {} is {}; ", i, name_of(found[i].dtype()));
    if (!(apart < 200)) fault += fmt::format("gradient {} lies {} units from that in f64; ", i, apart);
  }
  return fault;
}

}  // namespace reel_test
