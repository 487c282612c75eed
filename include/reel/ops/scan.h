#pragma once

#include <reel/tensor.h>

namespace reel {

/// y_i = x_0 + … + x_i along an axis, or over all elements in row-major order. Integers and bools give i64; f32 is
/// summed in f64. Throws: ShapeError if the axis does not exist.
Tensor cumsum(const Arg& x);
Tensor cumsum(const Arg& x, int axis);
/// y_i = x_0 · … · x_i, likewise. The gradient is exact with any number of zeros among the factors.
Tensor cumprod(const Arg& x);
Tensor cumprod(const Arg& x, int axis);

}  // namespace reel
