#pragma once

#include <reel/ops/reduce.h>

namespace reel {

struct VarianceOptions {
  ReduceOptions::ByName by_name{};
  /// The divisor is n − correction, or 0 where that is negative. Source: NumPy's default, 0; PyTorch's is 1.
  double correction = 0;
  bool keepdims = false;
};

/// Σ (x − mean)² / (n − correction), over all elements or the given axes; NaN of nothing. The mean is taken first: a large
/// one costs no digits. Throws: DTypeError unless floating; ShapeError for bad axes.
Tensor var(const Arg& x, VarianceOptions options = {});
Tensor var(const Arg& x, const Shape& axes, VarianceOptions options = {});
template <detail::IndexInteger Axis>
Tensor var(const Arg& x, Axis axis, VarianceOptions options = {}) {
  return var(x, Shape{detail::index_number(axis)}, options);
}
/// √var. Where it is 0, so is the gradient. Source: PyTorch's std for that gradient.
Tensor std(const Arg& x, VarianceOptions options = {});
Tensor std(const Arg& x, const Shape& axes, VarianceOptions options = {});
template <detail::IndexInteger Axis>
Tensor std(const Arg& x, Axis axis, VarianceOptions options = {}) {
  return std(x, Shape{detail::index_number(axis)}, options);
}

/// The middle element, or the mean of the two middle ones; NaN if one is NaN. Integers and bools give f32. The gradient
/// flows to the middle elements; of equals, in row-major order. Throws: ShapeError for bad axes and for the median of
/// nothing. Source: NumPy.
Tensor median(const Arg& x, ReduceOptions options = {});
Tensor median(const Arg& x, const Shape& axes, ReduceOptions options = {});
template <detail::IndexInteger Axis>
Tensor median(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return median(x, Shape{detail::index_number(axis)}, options);
}

}  // namespace reel
