#pragma once

#include <reel/ops/reduce.h>

namespace reel {

/// Options of `norm`.
struct NormOptions {
  ReduceOptions::ByName by_name{};  ///< not to be set: keeps a braced list of axes from being read as options
  /// The order of the norm: any number, ±∞ included. Default 2.
  double p = 2;
  /// Whether reduced axes stay, with size 1. Default false.
  bool keepdims = false;
};

// A template, since g++ reads `{.p = 1}` as axes, too, and then takes what is no template.

/// The vector norm (Σ |x|^p)^(1/p) over the given axes, by default all, computed without overflow or underflow. p = 0
/// counts the elements that are not 0; p = ∞ gives the largest magnitude, p = −∞ the smallest. The gradient is 0 for
/// elements that are 0, and for p = ±∞ shared evenly among equal magnitudes.
/// Throws: ShapeError if an axis does not exist or is named twice, and for no elements where p is negative or infinite;
/// DTypeError unless floating; Error if p is NaN.
/// Source: NumPy's linalg.norm of a vector.
template <int = 0>
Tensor norm(const Arg& x, const Axes& axes = all_axes, NormOptions options = {});
/// `norm` over all axes.
inline Tensor norm(const Arg& x, NormOptions options) { return norm(x, all_axes, options); }

}  // namespace reel
