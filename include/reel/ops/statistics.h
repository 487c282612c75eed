#pragma once

#include <cstdint>

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

// Templates, since g++ reads `{.correction = 1}` as axes, too, and then takes what is no template.

/// The variance Σ (x − mean)² / (n − correction) over the given axes, by default all; NaN of no elements. The mean is
/// subtracted first: a large one costs no digits.
/// Throws: ShapeError if an axis does not exist or is named twice; DTypeError unless floating.
/// Source: NumPy's var.
template <int = 0>
Tensor var(const Arg& x, const Axes& axes = all_axes, VarianceOptions options = {});
/// `var` over all axes.
inline Tensor var(const Arg& x, VarianceOptions options) { return var(x, all_axes, options); }
/// The standard deviation √(Σ (x − mean)² / (n − correction)) over the given axes, by default all; NaN of no elements.
/// Where it is 0, so is the gradient.
/// Throws: ShapeError if an axis does not exist or is named twice; DTypeError unless floating.
/// Source: NumPy's std; for the gradient at 0 PyTorch's.
template <int = 0>
Tensor std(const Arg& x, const Axes& axes = all_axes, VarianceOptions options = {});
/// `std` over all axes.
inline Tensor std(const Arg& x, VarianceOptions options) { return std(x, all_axes, options); }

/// The median over the given axes, by default all: the middle element, or the mean of the two middle ones; NaN if one is
/// NaN. Integers and bools give f32. The gradient flows to the middle elements; of equals, in row-major order.
/// Throws: ShapeError if an axis does not exist or is named twice, and for the median of no elements.
/// Source: NumPy's median.
Tensor median(const Arg& x, const Axes& axes = all_axes, ReduceOptions options = {});
/// `median` over all axes.
inline Tensor median(const Arg& x, ReduceOptions options) { return median(x, all_axes, options); }

/// The number that `quantile` gives for a position between two elements a and b, at the fraction t of the distance.
enum class QuantileInterpolation : std::uint8_t {
  linear,    ///< a + t (b − a)
  lower,     ///< a
  higher,    ///< b
  midpoint,  ///< (a + b) / 2
  nearest,   ///< the nearer one; of t = ½ that whose index is even
};

/// Options of `quantile`.
struct QuantileOptions {
  ReduceOptions::ByName by_name{};  ///< not to be set: keeps a braced list of axes from being read as options
  /// The number between two elements. Default linear.
  QuantileInterpolation interpolation = QuantileInterpolation::linear;
  /// Whether reduced axes stay, with size 1. Default false.
  bool keepdims = false;
};

/// The q-quantiles over the given axes, by default all: the element at q (n − 1) in ascending order, interpolated where
/// that is no integer; NaN if one is NaN. q: a number or a tensor of rank 0, or (k), which gives a first axis of k
/// results. Integers and bools give f32. The gradient flows to the two elements and, if it is a tensor, to q.
/// Throws: ShapeError if an axis does not exist or is named twice, for a q of more axes, and for the quantile of no
/// elements; Error for a q outside [0, 1], on a GPU unchecked if it is a tensor; DTypeError for a q that is not floating;
/// DeviceError.
/// Source: PyTorch's quantile.
Tensor quantile(const Arg& x, const Arg& q, const Axes& axes = all_axes, QuantileOptions options = {});
/// `quantile` over all axes.
inline Tensor quantile(const Arg& x, const Arg& q, QuantileOptions options) {
  return quantile(x, q, all_axes, options);
}

}  // namespace reel
