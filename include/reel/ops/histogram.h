#pragma once

#include <cstdint>

#include <reel/tensor.h>

namespace reel {

/// Options of `bincount`.
struct BincountOptions {
  /// The number that each element adds to its count: x's shape. Default: 1 each, counted in i64.
  Tensor weights = {};
  /// The least number of bins. Default 0.
  std::int64_t minimum_length = 0;
};

/// How often each number occurs: y_i = Σ [x_n = i], or Σ weights_n [x_n = i], for i from 0 to the largest element, or
/// to the minimum length if that is more. x (N), not negative → (bins), i64 or the weights' dtype. The gradient flows to
/// the weights.
/// Throws: IndexError for a negative element; DTypeError unless integers; ShapeError unless a vector, for weights
/// of another shape, and for a negative length; DeviceError.
/// Source: NumPy's bincount.
Tensor bincount(const Arg& x, BincountOptions options = {});

/// Options of `histc`.
struct HistcOptions {
  std::int64_t bins = 100;  ///< the number of bins, positive; default 100
  double low = 0;           ///< where the first bin begins; default 0. If low = high, both are taken from the elements
  double high = 0;          ///< where the last bin ends; default 0
};

/// The histogram of all elements: how many are in each of `bins` equal parts of [low, high], in x's dtype. Elements
/// outside, and NaN, are not counted; the last bin contains `high`. No gradient.
/// Throws: DTypeError unless floating; ShapeError unless the number of bins is positive; Error unless low ≤ high and
/// both are finite, also where they are those of the elements.
/// Source: PyTorch's histc.
Tensor histc(const Arg& x, HistcOptions options = {});

}  // namespace reel
