#pragma once

#include <reel/nn/initialise.h>

#include "../core/autocast.h"

namespace reel::nn {

/// Fills a weight (rows, gates · H), or a bias (gates · H), one gate's block after the other as `given` fills it; without
/// that, uniform on ±1/√H. `raised` is added to the block of gate
/// `raised_gate`.
Initialiser by_gate(const Initialiser& given, int gates, std::int64_t hidden_size, double raised = 0,
                    std::size_t raised_gate = 1);

/// The options' dtype and generator.
template <class Options>
RandomOptions draw_of(const Options& options) {
  return {.dtype = options.dtype, .generator = options.generator};
}

/// Throws: ShapeError unless both are positive.
void check_cell_sizes(const char* name, std::int64_t input_size, std::int64_t hidden_size, Location where);

/// Whether it is defined and of that shape.
bool has_shape(const Tensor& x, const Shape& shape);
/// Also of an undefined tensor.
std::string shape_of(const Tensor& x);
/// Whether x is of the weight's dtype, or is cast to it within an autocast scope.
inline bool goes_with(const Tensor& weight, const Tensor& x) {
  if (!detail::is_autocasting()) return x.dtype() == weight.dtype();
  return detail::suited(detail::Precision::full, x.dtype()) == detail::suited(detail::Precision::full, weight.dtype());
}

}  // namespace reel::nn
