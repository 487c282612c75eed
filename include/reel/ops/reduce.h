#pragma once

#include <reel/tensor.h>

// Each reduces all elements, or those along the given axes. Negative axes count from the end.
// All throw ShapeError if an axis does not exist or is named twice.

namespace reel {

struct ReduceOptions {
  /// Keeps `sum(x, {1})`, where 1 is an axis, from being read as options.
  struct ByName {
    explicit ByName() = default;
  } by_name{};
  /// Reduced axes stay, with size 1.
  bool keepdims = false;
};

/// Σ x; 0 of nothing. Integers and bools give i64. Floating sums are compensated: their error does not grow with the
/// count, but for that of the terms' sizes.
Tensor sum(const Arg& x, ReduceOptions options = {});
Tensor sum(const Arg& x, const Shape& axes, ReduceOptions options = {});
template <detail::IndexInteger Axis>
Tensor sum(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return sum(x, Shape{detail::index_number(axis)}, options);
}
/// Σ x / n; NaN of nothing. Throws: DTypeError unless floating.
Tensor mean(const Arg& x, ReduceOptions options = {});
Tensor mean(const Arg& x, const Shape& axes, ReduceOptions options = {});
template <detail::IndexInteger Axis>
Tensor mean(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return mean(x, Shape{detail::index_number(axis)}, options);
}
/// Π x; 1 of nothing. Integers and bools give i64. The gradient is exact with any number of zeros among the factors.
Tensor prod(const Arg& x, ReduceOptions options = {});
Tensor prod(const Arg& x, const Shape& axes, ReduceOptions options = {});
template <detail::IndexInteger Axis>
Tensor prod(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return prod(x, Shape{detail::index_number(axis)}, options);
}

/// Largest element; NaN if one is NaN. The gradient is shared out evenly among equal largest elements.
/// Throws: ShapeError for the largest of nothing. Source: PyTorch's amax.
Tensor max(const Arg& x, ReduceOptions options = {});
Tensor max(const Arg& x, const Shape& axes, ReduceOptions options = {});
template <detail::IndexInteger Axis>
Tensor max(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return max(x, Shape{detail::index_number(axis)}, options);
}
/// Smallest element, likewise.
Tensor min(const Arg& x, ReduceOptions options = {});
Tensor min(const Arg& x, const Shape& axes, ReduceOptions options = {});
template <detail::IndexInteger Axis>
Tensor min(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return min(x, Shape{detail::index_number(axis)}, options);
}
/// Place of the largest element, as i64: along an axis, or among all elements in row-major order. The first of equals;
/// that of the first NaN if there is one. Throws: ShapeError for the largest of nothing.
Tensor argmax(const Arg& x, ReduceOptions options = {});
Tensor argmax(const Arg& x, int axis, ReduceOptions options = {});
/// Place of the smallest element, likewise.
Tensor argmin(const Arg& x, ReduceOptions options = {});
Tensor argmin(const Arg& x, int axis, ReduceOptions options = {});

/// Whether an element is not 0, as bool; NaN is not 0. False of nothing.
Tensor any(const Arg& x, ReduceOptions options = {});
Tensor any(const Arg& x, const Shape& axes, ReduceOptions options = {});
template <detail::IndexInteger Axis>
Tensor any(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return any(x, Shape{detail::index_number(axis)}, options);
}
/// Whether no element is 0, as bool. True of nothing.
Tensor all(const Arg& x, ReduceOptions options = {});
Tensor all(const Arg& x, const Shape& axes, ReduceOptions options = {});
template <detail::IndexInteger Axis>
Tensor all(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return all(x, Shape{detail::index_number(axis)}, options);
}
/// How many elements are not 0, as i64.
Tensor count_nonzero(const Arg& x, ReduceOptions options = {});
Tensor count_nonzero(const Arg& x, const Shape& axes, ReduceOptions options = {});
template <detail::IndexInteger Axis>
Tensor count_nonzero(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return count_nonzero(x, Shape{detail::index_number(axis)}, options);
}

/// Sums away the axes along which a tensor of `shape` would have been broadcast to x's; a copy where there are none.
/// Throws: ShapeError if `shape` does not broadcast to x's.
Tensor sum_to(const Arg& x, const Shape& shape);

}  // namespace reel
