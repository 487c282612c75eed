#pragma once

#include <reel/tensor.h>

/// \file
/// Similarities and distances of vectors. Operands have one floating dtype; bf16 and f16 are rounded once, at the end.

namespace reel {

/// Options of `cosine_similarity`.
struct CosineSimilarityOptions {
  int axis = 1;           ///< the axis of the vectors' elements; default 1
  double epsilon = 1e-8;  ///< ε: the least divisor of each vector; at least 0. Default 10⁻⁸
};

/// The cosine of the angle between vectors, a·b / (max(‖a‖, ε) max(‖b‖, ε)), along an axis of a and b, which broadcast;
/// the result lacks the axis.
/// Throws: ShapeError unless the shapes broadcast, and for an axis that does not exist; DTypeError unless both have one
/// floating dtype; DeviceError for operands on different devices; Error for a negative ε.
/// Source: PyTorch's cosine_similarity.
Tensor cosine_similarity(const Arg& a, const Arg& b, CosineSimilarityOptions options = {});

/// Options of `pairwise_distance`.
struct PairwiseDistanceOptions {
  double p = 2;           ///< the order of the norm; default 2
  double epsilon = 1e-6;  ///< added to each difference; default 10⁻⁶
  bool keepdims = false;  ///< whether the last axis stays, with size 1; default false
};

/// ‖a − b + ε‖_p over the last axis of a and b, which broadcast: (…, D) → (…).
/// Throws: ShapeError unless the shapes broadcast, to at least one axis; DTypeError unless both have one floating dtype;
/// DeviceError for operands on different devices; Error if p is NaN.
/// Source: PyTorch's pairwise_distance.
Tensor pairwise_distance(const Arg& a, const Arg& b, PairwiseDistanceOptions options = {});

/// Options of `cdist`.
struct CdistOptions {
  double p = 2;  ///< the order of the norm, at least 0; ∞ for the largest difference. Default 2
};

/// ‖a_i − b_j‖_p of each row of a with each of b: a (…, P, D), b (…, R, D) → (…, P, R), where the axes in front
/// broadcast. With p = 2 and more than 25 rows, distances come from a matrix product, so that those of nearly equal rows
/// are accurate only relative to the rows' distance from their mean. The gradient of a distance of 0 is 0.
/// Throws: ShapeError unless the shapes fit; DTypeError unless both have one floating dtype; DeviceError for operands on
/// different devices; Error for a negative p or NaN.
/// Source: PyTorch's cdist.
Tensor cdist(const Arg& a, const Arg& b, CdistOptions options = {});

}  // namespace reel
