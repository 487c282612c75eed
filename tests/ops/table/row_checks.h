#pragma once

#include <string>
#include <vector>

#include "ops/table/table.h"

// What is asked of a row of the op table. Each question gives an empty text, or says what is wrong.

namespace reel_test {

/// What the inputs of fixed rows are drawn from.
constexpr std::uint64_t table_seed = 20250107;

Arrays arrays_of(std::span<const reel::Tensor> tensors);
std::int64_t elements(std::span<const reel::Tensor> tensors);
/// How far two arrays lie apart, in units of the second one's largest element, or of 1.
double distance(const reel::Tensor& a, const reel::Tensor& b);

/// The inputs through which gradients flow.
std::vector<reel::Tensor> floating_inputs(const Row& row, const std::vector<reel::Tensor>& inputs);
/// The row as a function of those. Both arguments must outlive it.
Function of_floating_inputs(const Row& row, const std::vector<reel::Tensor>& inputs);
/// Those of f(x), from a seed without symmetry.
std::vector<reel::Tensor> gradients(const Function& f, const std::vector<reel::Tensor>& x);

/// The result against the reference; the inputs keep their values.
std::string forward_fault(const Row& row, reel::DType dtype);
/// Whether the row is small enough for checks by differences.
bool checks_gradient(const Row& row);
bool checks_second_order(const Row& row);
/// f64 gradients against differences.
std::string gradient_fault(const Row& row);
/// The gradient's gradient.
std::string second_order_fault(const Row& row);
/// f32 gradients against those in f64.
std::string narrow_gradient_fault(const Row& row);

}  // namespace reel_test
