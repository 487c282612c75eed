#pragma once

#include <reel/tensor.h>

namespace reel {

/// Options of `softmax` and `log_softmax`.
struct SoftmaxOptions {
  /// Bools that broadcast to x: only elements where it is true take part. Undefined (default): all do.
  Tensor mask = {};
};

/// y_i = e^(x_i − max x) / Σ_j e^(x_j − max x) along an axis. With a mask the sum and the maximum are over the elements
/// that take part; the others are 0 and so are their gradients, also where no element of a row, or only −∞, takes part.
/// Without a mask a row that is −∞ throughout is NaN.
/// Throws: DTypeError unless x is floating and the mask bool; ShapeError for an axis that does not exist, or a mask
/// that does not broadcast to x; DeviceError.
Tensor softmax(const Arg& x, int axis = -1, const SoftmaxOptions& options = {});

/// y_i = x_i − max x − log Σ_j e^(x_j − max x) along an axis; with a mask the sum and the maximum are over the elements
/// where it is true, and the result is −∞ elsewhere.
/// Throws: DTypeError unless x is floating and the mask bool; ShapeError for an axis that does not exist, or a mask
/// that does not broadcast to x; DeviceError.
Tensor log_softmax(const Arg& x, int axis = -1, const SoftmaxOptions& options = {});

/// The nearest point, in Euclidean distance, on the simplex of probabilities along an axis: y_i = max(x_i − τ, 0) with
/// Σ_i y_i = 1, of which many are exactly 0. On its support S, dx_i = d_i − Σ_S d / |S|; off it 0.
/// Throws: DTypeError unless floating; ShapeError for an axis that does not exist.
/// Source: Martins and Astudillo, From softmax to sparsemax (ICML 2016).
Tensor sparsemax(const Arg& x, int axis = -1);

}  // namespace reel
