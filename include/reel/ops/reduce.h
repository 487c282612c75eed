#pragma once

#include <reel/tensor.h>

/// \file
/// Reductions: each over all elements, or over those along the given axes.

namespace reel {

/// Options of reductions.
struct ReduceOptions {
  /// Keeps `sum(x, {1})`, where 1 is an axis, from being read as options.
  struct ByName {
    /// Not made but as the default of `by_name`.
    explicit ByName() = default;
  } by_name{};  ///< not to be set: keeps a braced list of axes from being read as options
  /// Whether reduced axes stay, with size 1. Default false.
  bool keepdims = false;
};

/// The sum Σ x over all elements; 0 of no elements. Integers and bools give i64. Floating sums are compensated: their
/// error does not grow with the number of terms.
Tensor sum(const Arg& x, ReduceOptions options = {});
/// The sum Σ x over the given axes, of which negative ones count from the end; 0 of no elements. Integers and bools
/// give i64. Floating sums are compensated: their error does not grow with the number of terms.
/// Throws: ShapeError if an axis does not exist or is named twice.
Tensor sum(const Arg& x, const Shape& axes, ReduceOptions options = {});
/// The sum Σ x along one axis, which counts from the end if negative; 0 of no elements. Integers and bools give i64.
/// Floating sums are compensated: their error does not grow with the number of terms.
/// Throws: ShapeError if the axis does not exist.
template <detail::IndexInteger Axis>
Tensor sum(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return sum(x, Shape{detail::index_number(axis)}, options);
}
/// The mean Σ x / n over all elements; NaN of no elements.
/// Throws: DTypeError unless floating.
Tensor mean(const Arg& x, ReduceOptions options = {});
/// The mean Σ x / n over the given axes, of which negative ones count from the end; NaN of no elements.
/// Throws: ShapeError if an axis does not exist or is named twice; DTypeError unless floating.
Tensor mean(const Arg& x, const Shape& axes, ReduceOptions options = {});
/// The mean Σ x / n along one axis, which counts from the end if negative; NaN of no elements.
/// Throws: ShapeError if the axis does not exist; DTypeError unless floating.
template <detail::IndexInteger Axis>
Tensor mean(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return mean(x, Shape{detail::index_number(axis)}, options);
}
/// The product Π x over all elements; 1 of no elements. Integers and bools give i64. The gradient is exact with any
/// number of zeros among the factors.
Tensor prod(const Arg& x, ReduceOptions options = {});
/// The product Π x over the given axes, of which negative ones count from the end; 1 of no elements. Integers and bools
/// give i64. The gradient is exact with any number of zeros among the factors.
/// Throws: ShapeError if an axis does not exist or is named twice.
Tensor prod(const Arg& x, const Shape& axes, ReduceOptions options = {});
/// The product Π x along one axis, which counts from the end if negative; 1 of no elements. Integers and bools give
/// i64. The gradient is exact with any number of zeros among the factors.
/// Throws: ShapeError if the axis does not exist.
template <detail::IndexInteger Axis>
Tensor prod(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return prod(x, Shape{detail::index_number(axis)}, options);
}

/// The largest element over all elements; NaN if one is NaN. The gradient is shared evenly among equal largest
/// elements.
/// Throws: ShapeError for the largest of no elements.
/// Source: PyTorch's amax.
Tensor max(const Arg& x, ReduceOptions options = {});
/// The largest element over the given axes, of which negative ones count from the end; NaN if one is NaN. The gradient
/// is shared evenly among equal largest elements.
/// Throws: ShapeError if an axis does not exist or is named twice; ShapeError for the largest of no elements.
/// Source: PyTorch's amax.
Tensor max(const Arg& x, const Shape& axes, ReduceOptions options = {});
/// The largest element along one axis, which counts from the end if negative; NaN if one is NaN. The gradient is shared
/// evenly among equal largest elements.
/// Throws: ShapeError if the axis does not exist; ShapeError for the largest of no elements.
/// Source: PyTorch's amax.
template <detail::IndexInteger Axis>
Tensor max(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return max(x, Shape{detail::index_number(axis)}, options);
}
/// The smallest element over all elements; NaN if one is NaN. The gradient is shared evenly among equal smallest
/// elements.
/// Throws: ShapeError for the smallest of no elements.
/// Source: PyTorch's amin.
Tensor min(const Arg& x, ReduceOptions options = {});
/// The smallest element over the given axes, of which negative ones count from the end; NaN if one is NaN. The gradient
/// is shared evenly among equal smallest elements.
/// Throws: ShapeError if an axis does not exist or is named twice; ShapeError for the smallest of no elements.
/// Source: PyTorch's amin.
Tensor min(const Arg& x, const Shape& axes, ReduceOptions options = {});
/// The smallest element along one axis, which counts from the end if negative; NaN if one is NaN. The gradient is
/// shared evenly among equal smallest elements.
/// Throws: ShapeError if the axis does not exist; ShapeError for the smallest of no elements.
/// Source: PyTorch's amin.
template <detail::IndexInteger Axis>
Tensor min(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return min(x, Shape{detail::index_number(axis)}, options);
}
/// The index of the largest element, counted over all elements in row-major order, as i64. The first of equals; that of
/// the first NaN if there is one. No gradient.
/// Throws: ShapeError for the largest of no elements.
Tensor argmax(const Arg& x, ReduceOptions options = {});
/// The index of the largest element along an axis, as i64; a negative axis counts from the end. The first of equals;
/// that of the first NaN if there is one. No gradient.
/// Throws: ShapeError for the largest of no elements, and if the axis does not exist.
Tensor argmax(const Arg& x, int axis, ReduceOptions options = {});
/// The index of the smallest element, counted over all elements in row-major order, as i64. The first of equals; that
/// of the first NaN if there is one. No gradient.
/// Throws: ShapeError for the smallest of no elements.
Tensor argmin(const Arg& x, ReduceOptions options = {});
/// The index of the smallest element along an axis, as i64; a negative axis counts from the end. The first of equals;
/// that of the first NaN if there is one. No gradient.
/// Throws: ShapeError for the smallest of no elements, and if the axis does not exist.
Tensor argmin(const Arg& x, int axis, ReduceOptions options = {});

/// Whether an element over all elements is not 0, as bool; NaN is not 0. False of no elements.
Tensor any(const Arg& x, ReduceOptions options = {});
/// Whether an element over the given axes, of which negative ones count from the end is not 0, as bool; NaN is not 0.
/// False of no elements.
/// Throws: ShapeError if an axis does not exist or is named twice.
Tensor any(const Arg& x, const Shape& axes, ReduceOptions options = {});
/// Whether an element along one axis, which counts from the end if negative is not 0, as bool; NaN is not 0. False of
/// no elements.
/// Throws: ShapeError if the axis does not exist.
template <detail::IndexInteger Axis>
Tensor any(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return any(x, Shape{detail::index_number(axis)}, options);
}
/// Whether no element over all elements is 0, as bool; NaN is not 0. True of no elements.
Tensor all(const Arg& x, ReduceOptions options = {});
/// Whether no element over the given axes, of which negative ones count from the end is 0, as bool; NaN is not 0. True
/// of no elements.
/// Throws: ShapeError if an axis does not exist or is named twice.
Tensor all(const Arg& x, const Shape& axes, ReduceOptions options = {});
/// Whether no element along one axis, which counts from the end if negative is 0, as bool; NaN is not 0. True of no
/// elements.
/// Throws: ShapeError if the axis does not exist.
template <detail::IndexInteger Axis>
Tensor all(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return all(x, Shape{detail::index_number(axis)}, options);
}
/// The number of elements over all elements that are not 0, as i64; NaN is not 0.
Tensor count_nonzero(const Arg& x, ReduceOptions options = {});
/// The number of elements over the given axes, of which negative ones count from the end that are not 0, as i64; NaN is
/// not 0.
/// Throws: ShapeError if an axis does not exist or is named twice.
Tensor count_nonzero(const Arg& x, const Shape& axes, ReduceOptions options = {});
/// The number of elements along one axis, which counts from the end if negative that are not 0, as i64; NaN is not 0.
/// Throws: ShapeError if the axis does not exist.
template <detail::IndexInteger Axis>
Tensor count_nonzero(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return count_nonzero(x, Shape{detail::index_number(axis)}, options);
}

/// The sum of the main diagonal of the matrices in the last two axes: (…, M, N) → (…). Integers and bools give i64.
/// Throws: ShapeError for fewer than two axes.
/// Source: PyTorch's trace, for several matrices.
Tensor trace(const Arg& x);

/// Sums over the axes along which a tensor of `shape` would be broadcast to x's, so that the result has that shape: the
/// transpose of broadcasting. A copy of x where there are none.
/// Throws: ShapeError if `shape` does not broadcast to x's.
Tensor sum_to(const Arg& x, const Shape& shape);

/// log Σ e^x over all elements, without overflow; −∞ of no elements. Where all elements are −∞ the gradient is 0, and
/// elements that are +∞ share it evenly. Integers and bools give f32.
/// Source: SciPy's logsumexp.
Tensor logsumexp(const Arg& x, ReduceOptions options = {});
/// log Σ e^x over the given axes, of which negative ones count from the end, without overflow; −∞ of no elements. Where
/// all elements are −∞ the gradient is 0, and elements that are +∞ share it evenly. Integers and bools give f32.
/// Throws: ShapeError if an axis does not exist or is named twice.
/// Source: SciPy's logsumexp.
Tensor logsumexp(const Arg& x, const Shape& axes, ReduceOptions options = {});
/// log Σ e^x along one axis, which counts from the end if negative, without overflow; −∞ of no elements. Where all
/// elements are −∞ the gradient is 0, and elements that are +∞ share it evenly. Integers and bools give f32.
/// Throws: ShapeError if the axis does not exist.
/// Source: SciPy's logsumexp.
template <detail::IndexInteger Axis>
Tensor logsumexp(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return logsumexp(x, Shape{detail::index_number(axis)}, options);
}

}  // namespace reel
