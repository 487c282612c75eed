#pragma once

#include <cstdint>

#include <reel/tensor.h>

namespace reel {

/// How losses of single examples are brought together.
enum class LossReduction : std::uint8_t { none, sum, mean };

struct CrossEntropyOptions {
  LossReduction reduction = LossReduction::mean;
  /// A target that counts for nothing, neither in the sum nor in the mean.
  std::int64_t ignore_index = -100;
};

/// −log softmax(logits)[target], per example: logits (N, C) or (C), targets (N) or (), of i32 or i64 in [0, C); for
/// logits (N, C, d…), targets (N, d…). The mean is over the targets that are not ignored; NaN if all are.
/// Throws: ShapeError; DTypeError; IndexError for a target out of range.
/// Source: PyTorch's cross_entropy.
Tensor cross_entropy(const Arg& logits, const Arg& targets, CrossEntropyOptions options = {});

}  // namespace reel
