#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ops/table/table.h"

// Checks of a row of the op table. Each returns an empty text, or a description of the fault.

namespace reel_test {

/// The seed of the inputs of fixed rows.
constexpr std::uint64_t table_seed = 20250107;

Arrays arrays_of(std::span<const reel::Tensor> tensors);
std::int64_t elements(std::span<const reel::Tensor> tensors);
/// The largest difference of two arrays, relative to the second one's largest element or 1.
double distance(const reel::Tensor& a, const reel::Tensor& b);

/// The inputs through which gradients flow.
std::vector<reel::Tensor> floating_inputs(const Row& row, const std::vector<reel::Tensor>& inputs);
/// The row as a function of these inputs. Both arguments must outlive it.
Function of_floating_inputs(const Row& row, const std::vector<reel::Tensor>& inputs);
/// The gradients of f(x) for a seed without symmetry.
std::vector<reel::Tensor> gradients(const Function& f, const std::vector<reel::Tensor>& x);

/// Compares the result with the reference, and checks that the inputs are unchanged.
std::string forward_fault(const Row& row, reel::DType dtype);
/// Returns true if the row is small enough for checks by differences.
bool checks_gradient(const Row& row);
bool checks_second_order(const Row& row);
/// Compares f64 gradients with differences.
std::string gradient_fault(const Row& row);
/// Compares the gradient's gradient with differences.
std::string second_order_fault(const Row& row);
/// Compares f32 gradients with those in f64.
std::string narrow_gradient_fault(const Row& row);

/// How a tensor of equal values is laid out in memory.
struct InputLayout {
  std::string name;
  reel::Tensor (*apply)(const reel::Tensor& x);
};

inline reel::Shape reversed_axes(const reel::Tensor& x) {
  reel::Shape axes;
  for (int i = x.rank(); i-- > 0;) axes.push_back(i);
  return axes;
}

/// The filling of memory that must not be read.
inline reel::Tensor poison(const reel::Tensor& x) { return reel::full(x.shape(), NAN, {.dtype = x.dtype()}); }

inline reel::Tensor backwards(const reel::Tensor& x) {
  return reel::slice(x, 0, -1, std::numeric_limits<std::int64_t>::min(), -1);
}

inline const InputLayout input_layouts[] = {
    {"transposed",
     [](const reel::Tensor& x) {
       return reel::permute(reel::copy(reel::permute(x, reversed_axes(x))), reversed_axes(x));
     }},
    {"every other element",
     [](const reel::Tensor& x) {
       return x.rank() == reel::max_rank ? x : reel::select(reel::stack({x, poison(x)}, -1), -1, 0);
     }},
    {"every third element, from the second",
     [](const reel::Tensor& x) {
       return x.rank() == reel::max_rank ? x : reel::select(reel::stack({poison(x), x, poison(x)}, -1), -1, 1);
     }},
    {"inside a larger tensor",
     [](const reel::Tensor& x) {
       if (x.rank() == 0) return x;
       reel::Tensor larger = reel::concat({poison(x), x, poison(x)}, -1);
       return reel::slice(larger, -1, x.size(-1), 2 * x.size(-1));
     }},
    {"backwards", [](const reel::Tensor& x) { return x.rank() == 0 ? x : backwards(reel::copy(backwards(x))); }},
};

}  // namespace reel_test
