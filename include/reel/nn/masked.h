#pragma once

#include <reel/nn/packed.h>

// Reductions over the elements of each sequence; without any element the result is 0, and has no gradient. All throw
// DTypeError unless x is floating.

namespace reel::nn {

/// Σ_t x_t / length: → (B, …).
Tensor masked_mean(const Packed& x, Location where = Location::here());
/// max_t x_t: → (B, …). The first of equals has the gradient.
Tensor masked_max(const Packed& x, Location where = Location::here());

/// The same of the elements of x along an axis where the mask is true: x (T, B, …), mask (T, B), or the mask has more of x's
/// axes. What x holds elsewhere does not matter, not even NaN.
/// Throws: ShapeError unless the mask has x's first axes, the given one among them; DTypeError unless it is bool.
Tensor masked_mean(const Arg& x, const Tensor& mask, int axis = 0);
Tensor masked_max(const Arg& x, const Tensor& mask, int axis = 0);

}  // namespace reel::nn
