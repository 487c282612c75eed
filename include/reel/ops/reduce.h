#pragma once

#include <reel/tensor.h>

namespace reel {

struct ReduceOptions {
  /// Keeps `sum(x, {1})`, where 1 is an axis, from being read as options.
  struct ByName {
    explicit ByName() = default;
  } by_name{};
  /// Reduced axes stay, with size 1.
  bool keepdims = false;
};

/// Sum over all elements, or over the given axes; 0 of nothing. Integers and bools give i64. f32 sums are blocked, so that
/// their error grows with the logarithm of the count.
/// Throws: ShapeError if an axis does not exist or is named twice.
Tensor sum(const Arg& x, ReduceOptions options = {});
Tensor sum(const Arg& x, const Shape& axes, ReduceOptions options = {});
/// Mean over all elements, or over the given axes; NaN of nothing. Throws: DTypeError unless floating.
Tensor mean(const Arg& x, ReduceOptions options = {});
Tensor mean(const Arg& x, const Shape& axes, ReduceOptions options = {});
/// Largest element, of all or along the given axes; NaN if one is NaN. The gradient is shared out evenly among equal
/// largest elements (PyTorch's amax). Throws: ShapeError for the largest of nothing.
Tensor max(const Arg& x, ReduceOptions options = {});
Tensor max(const Arg& x, const Shape& axes, ReduceOptions options = {});

/// Sums away the axes along which a tensor of `shape` would have been broadcast to x's shape.
/// Throws: ShapeError if `shape` does not broadcast to x's.
Tensor sum_to(const Arg& x, const Shape& shape);

}  // namespace reel
