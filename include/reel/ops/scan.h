#pragma once

#include <reel/ops/sort.h>
#include <reel/tensor.h>

namespace reel {

/// The cumulative sum y_i = x_0 + … + x_i over all elements in row-major order. Integers and bools give i64; f32 is
/// summed in f64.
/// Source: NumPy's cumsum.
Tensor cumsum(const Arg& x);
/// The cumulative sum y_i = x_0 + … + x_i along an axis. Integers and bools give i64; f32 is summed in f64.
/// Throws: ShapeError if the axis does not exist.
/// Source: NumPy's cumsum.
Tensor cumsum(const Arg& x, int axis);
/// The cumulative product y_i = x_0 · … · x_i over all elements in row-major order. Integers and bools give i64. The
/// gradient is exact with any number of zeros among the factors.
/// Source: NumPy's cumprod.
Tensor cumprod(const Arg& x);
/// The cumulative product y_i = x_0 · … · x_i along an axis. Integers and bools give i64. The gradient is exact with
/// any number of zeros among the factors.
/// Throws: ShapeError if the axis does not exist.
/// Source: NumPy's cumprod.
Tensor cumprod(const Arg& x, int axis);
/// The cumulative log-sum-exp y_i = log(e^x_0 + … + e^x_i) along an axis, without overflow. Integers and bools give f32;
/// f32 is accumulated in f64. The gradient of a result −∞ is 0, and elements that are +∞ share that of +∞ evenly.
/// Throws: ShapeError if the axis does not exist.
/// Source: PyTorch's logcumsumexp.
Tensor logcumsumexp(const Arg& x, int axis);

/// The cumulative maximum y_i = max(x_0, …, x_i) along an axis, and the index of the element, the last of equals. From
/// the first NaN on, y is NaN. The gradient of a value goes to its position in x.
/// Throws: ShapeError if the axis does not exist.
/// Source: PyTorch's cummax.
ValuesAndIndices cummax(const Arg& x, int axis);
/// The cumulative minimum y_i = min(x_0, …, x_i) along an axis, and the index of the element, the last of equals. From
/// the first NaN on, y is NaN. The gradient of a value goes to its position in x.
/// Throws: ShapeError if the axis does not exist.
/// Source: PyTorch's cummin.
ValuesAndIndices cummin(const Arg& x, int axis);

}  // namespace reel
