#pragma once

#include <reel/nn/initialise.h>

#include "../../dispatch/autocast.h"
#include "../../ops/recurrent/weight_product.h"

namespace reel::nn {

/// An initialiser for a weight (rows, gates · H) or a bias (gates · H): fills one gate's block after another with
/// `given`; without it, uniformly on ±1/√H. `raised` is added to the block of gate `raised_gate`.
Initialiser by_gate(const Initialiser& given, int gates, std::int64_t hidden_size, double raised = 0,
                    std::size_t raised_gate = 1);

/// Random options with the dtype and generator of a layer's options.
template <class Options>
RandomOptions draw_of(const Options& options) {
  return {.dtype = options.dtype, .generator = options.generator};
}

/// The `weight_dtype` of a cell's options; unset if nothing is rounded.
/// Throws: DTypeError unless it is bf16 or f16 and the parameters are f32.
template <class Options>
std::optional<DType> rounding_of(const char* name, const Options& options, Location where) {
  DType rounding = detail::rounding_of(name, options.weight_dtype, options.dtype, where);
  return rounding == DType::f32 ? std::nullopt : std::optional(rounding);
}

/// Throws: ShapeError unless both are positive.
void check_cell_sizes(const char* name, std::int64_t input_size, std::int64_t hidden_size, Location where);

/// Returns true if x is defined and has that shape.
bool has_shape(const Tensor& x, const Shape& shape);
/// The shape of x as text, also for an undefined tensor.
std::string shape_of(const Tensor& x);
/// Returns true if x has the weight's dtype, or is cast to it within an autocast scope.
inline bool goes_with(const Tensor& weight, const Tensor& x) {
  if (!detail::is_autocasting()) return x.dtype() == weight.dtype();
  return detail::autocast_dtype(detail::Precision::full, x.dtype()) ==
         detail::autocast_dtype(detail::Precision::full, weight.dtype());
}

}  // namespace reel::nn
