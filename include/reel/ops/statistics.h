#pragma once

#include <reel/ops/reduce.h>

namespace reel {

/// Options of `var` and `std`.
struct VarianceOptions {
  ReduceOptions::ByName by_name{};  ///< not to be set: keeps a braced list of axes from being read as options
  /// The divisor is n − correction, or 0 where that is negative. Default 0, as NumPy's; PyTorch's is 1.
  double correction = 0;
  /// Whether reduced axes stay, with size 1. Default false.
  bool keepdims = false;
};

/// The variance Σ (x − mean)² / (n − correction) over all elements; NaN of no elements. The mean is subtracted first: a
/// large one costs no digits.
/// Throws: DTypeError unless floating.
/// Source: NumPy's var.
Tensor var(const Arg& x, VarianceOptions options = {});
/// The variance Σ (x − mean)² / (n − correction) over the given axes, of which negative ones count from the end; NaN of
/// no elements. The mean is subtracted first: a large one costs no digits.
/// Throws: ShapeError if an axis does not exist or is named twice; DTypeError unless floating.
/// Source: NumPy's var.
Tensor var(const Arg& x, const Shape& axes, VarianceOptions options = {});
/// The variance Σ (x − mean)² / (n − correction) along one axis, which counts from the end if negative; NaN of no
/// elements. The mean is subtracted first: a large one costs no digits.
/// Throws: ShapeError if the axis does not exist; DTypeError unless floating.
/// Source: NumPy's var.
template <detail::IndexInteger Axis>
Tensor var(const Arg& x, Axis axis, VarianceOptions options = {}) {
  return var(x, Shape{detail::index_number(axis)}, options);
}
/// The standard deviation √(Σ (x − mean)² / (n − correction)) over all elements; NaN of no elements. Where it is 0, so
/// is the gradient.
/// Throws: DTypeError unless floating.
/// Source: NumPy's std; for the gradient at 0 PyTorch's.
Tensor std(const Arg& x, VarianceOptions options = {});
/// The standard deviation √(Σ (x − mean)² / (n − correction)) over the given axes, of which negative ones count from
/// the end; NaN of no elements. Where it is 0, so is the gradient.
/// Throws: ShapeError if an axis does not exist or is named twice; DTypeError unless floating.
/// Source: NumPy's std; for the gradient at 0 PyTorch's.
Tensor std(const Arg& x, const Shape& axes, VarianceOptions options = {});
/// The standard deviation √(Σ (x − mean)² / (n − correction)) along one axis, which counts from the end if negative;
/// NaN of no elements. Where it is 0, so is the gradient.
/// Throws: ShapeError if the axis does not exist; DTypeError unless floating.
/// Source: NumPy's std; for the gradient at 0 PyTorch's.
template <detail::IndexInteger Axis>
Tensor std(const Arg& x, Axis axis, VarianceOptions options = {}) {
  return std(x, Shape{detail::index_number(axis)}, options);
}

/// The median over all elements: the middle element, or the mean of the two middle ones; NaN if one is NaN. Integers
/// and bools give f32. The gradient flows to the middle elements; of equals, in row-major order.
/// Throws: ShapeError for the median of no elements.
/// Source: NumPy's median.
Tensor median(const Arg& x, ReduceOptions options = {});
/// The median over the given axes, of which negative ones count from the end: the middle element, or the mean of the
/// two middle ones; NaN if one is NaN. Integers and bools give f32. The gradient flows to the middle elements; of
/// equals, in row-major order.
/// Throws: ShapeError if an axis does not exist or is named twice; ShapeError for the median of no elements.
/// Source: NumPy's median.
Tensor median(const Arg& x, const Shape& axes, ReduceOptions options = {});
/// The median along one axis, which counts from the end if negative: the middle element, or the mean of the two middle
/// ones; NaN if one is NaN. Integers and bools give f32. The gradient flows to the middle elements; of equals, in
/// row-major order.
/// Throws: ShapeError if the axis does not exist; ShapeError for the median of no elements.
/// Source: NumPy's median.
template <detail::IndexInteger Axis>
Tensor median(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return median(x, Shape{detail::index_number(axis)}, options);
}

}  // namespace reel
