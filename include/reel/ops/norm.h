#pragma once

#include <reel/ops/reduce.h>

namespace reel {

struct NormOptions {
  ReduceOptions::ByName by_name{};
  /// Any number, ±∞ included.
  double p = 2;
  bool keepdims = false;
};

/// (Σ |x|^p)^(1/p), over all elements or the given axes, neither overflowing nor vanishing on the way. p = 0 counts what
/// is not 0; p = ∞ gives the largest magnitude, p = −∞ the smallest. The gradient is 0 for elements that are 0, and for
/// p = ±∞ shared out evenly among equal magnitudes.
/// Throws: DTypeError unless floating; ShapeError for bad axes, and for nothing where p is negative or infinite; Error if
/// p is NaN. Source: NumPy's linalg.norm of a vector.
Tensor norm(const Arg& x, NormOptions options = {});
Tensor norm(const Arg& x, const Shape& axes, NormOptions options = {});
template <detail::IndexInteger Axis>
Tensor norm(const Arg& x, Axis axis, NormOptions options = {}) {
  return norm(x, Shape{detail::index_number(axis)}, options);
}

/// log Σ e^x, over all elements or the given axes; −∞ of nothing. Where all elements are −∞ the gradient is 0, and
/// elements that are +∞ share it evenly. Throws: DTypeError unless floating; ShapeError for bad axes.
Tensor logsumexp(const Arg& x, ReduceOptions options = {});
Tensor logsumexp(const Arg& x, const Shape& axes, ReduceOptions options = {});
template <detail::IndexInteger Axis>
Tensor logsumexp(const Arg& x, Axis axis, ReduceOptions options = {}) {
  return logsumexp(x, Shape{detail::index_number(axis)}, options);
}

}  // namespace reel
