#pragma once

#include <reel/nn/packed.h>

/// \file
/// Reductions over the elements of each sequence; without any element the result is 0, and has no gradient.

namespace reel::nn {

/// The mean of the elements of each sequence: Σ_t x_t / length → (B, …); 0 for an empty sequence.
/// Throws: DTypeError unless x is floating; ShapeError unless the lengths fit the elements; Error if the elements are
/// undefined.
Tensor masked_mean(const Packed& x, Location where = Location::here());
/// The largest elements of each sequence: max_t x_t → (B, …); 0 for an empty sequence. The first of equals has the
/// gradient.
/// Throws: DTypeError unless x is floating; ShapeError unless the lengths fit the elements; Error if the elements are
/// undefined.
Tensor masked_max(const Packed& x, Location where = Location::here());

/// The mean of the elements of x along an axis where the mask is true; 0 where there are none: x (T, B, …), mask (T,
/// B), or a mask with more of x's axes. Elements where the mask is false are ignored, even NaN.
/// Throws: ShapeError unless the mask has x's first axes, the given one among them; DTypeError unless it is bool and x
/// floating; Error for an undefined mask.
Tensor masked_mean(const Arg& x, const Tensor& mask, int axis = 0);
/// The largest elements of x along an axis where the mask is true; 0 where there are none. The first of equals has the
/// gradient: x (T, B, …), mask (T, B), or a mask with more of x's axes. Elements where the mask is false are ignored,
/// even NaN.
/// Throws: ShapeError unless the mask has x's first axes, the given one among them; DTypeError unless it is bool and x
/// floating; Error for an undefined mask.
Tensor masked_max(const Arg& x, const Tensor& mask, int axis = 0);

}  // namespace reel::nn
