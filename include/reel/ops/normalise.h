#pragma once

#include <reel/ops/layout.h>
#include <reel/tensor.h>

// Normalisations. Statistics are worked out in f64 about a number close to the mean, so large and close elements keep what
// tells them apart; bf16 and f16 are computed in f32 and rounded once. Weights and biases have x's dtype, or f32 beside
// bf16 and f16; without, they are 1 and 0.
//
// All throw DTypeError unless x is floating, or for another dtype of a weight or bias; ShapeError unless the shapes fit; Error for a
// negative epsilon.

namespace reel {

struct NormaliseOptions {
  /// At least 0.
  double epsilon = 1e-5;
};

/// y = (x − mean) / √(variance + ε) · weight + bias, over the last axes of x, whose sizes are `normalised`: at least one
/// axis; weight, bias: (normalised…). The variance is Σ (x − mean)² / n. Source: PyTorch; Ba, Kiros & Hinton 2016.
Tensor layer_norm(const Arg& x, const Shape& normalised, const Arg& weight, const Arg& bias,
                  NormaliseOptions options = {});
Tensor layer_norm(const Arg& x, const Shape& normalised, const Arg& weight, NormaliseOptions options = {});
Tensor layer_norm(const Arg& x, const Shape& normalised, NormaliseOptions options = {});

/// y = x / √(mean(x²) + ε) · weight, over the last axes of x, as layer_norm. Source: Zhang & Sennrich 2019; PyTorch, whose
/// default ε is the dtype's machine epsilon.
Tensor rms_norm(const Arg& x, const Shape& normalised, const Arg& weight, NormaliseOptions options = {});
Tensor rms_norm(const Arg& x, const Shape& normalised, NormaliseOptions options = {});

struct GroupNormOptions {
  /// At least 0.
  double epsilon = 1e-5;
  Layout layout = Layout::nchw;
};

/// y = (x − mean) / √(variance + ε) · weight + bias, where each example's mean and variance are taken over the channels of a
/// group: x: (N, C, d…), or in nhwc (N, d…, C); weight, bias: (C); C / groups neighbouring channels make a group.
/// Throws: ShapeError unless x has rank 2 or more and `groups` divides C. Source: PyTorch; Wu & He 2018.
Tensor group_norm(const Arg& x, std::int64_t groups, const Arg& weight, const Arg& bias, GroupNormOptions options = {});
Tensor group_norm(const Arg& x, std::int64_t groups, GroupNormOptions options = {});

/// The same with a group for each channel. Throws: ShapeError unless x has rank 3 or more, and more than one element a
/// channel. Source: PyTorch; Ulyanov, Vedaldi & Lempitsky 2016.
Tensor instance_norm(const Arg& x, const Arg& weight, const Arg& bias, GroupNormOptions options = {});
Tensor instance_norm(const Arg& x, GroupNormOptions options = {});

struct BatchNormOptions {
  /// Whether to take the statistics of the batch, and to update the running ones; else the running ones are taken.
  bool training = false;
  /// The share of the batch in the running statistics.
  double momentum = 0.1;
  /// At least 0.
  double epsilon = 1e-5;
  Layout layout = Layout::nchw;
};

/// y = (x − mean) / √(variance + ε) · weight + bias, by channel: x: (N, C) or (N, C, d…), in nhwc (N, d…, C); all else: (C).
/// In training, mean and variance, Σ (x − mean)² / n, are those of the batch over the other axes, and what the tensors of
/// the running ones hold is overwritten by (1 − momentum) running + momentum batch, with the variance of Σ (…)² / (n − 1).
/// Otherwise mean and variance are the running ones.
/// Running statistics are of x's dtype or f32.
/// Throws: ShapeError unless x has rank 2 or more, and in training more than one element a channel. Source: PyTorch;
/// Ioffe & Szegedy 2015.
Tensor batch_norm(const Arg& x, const Arg& weight, const Arg& bias, const Arg& running_mean,
                  const Arg& running_variance, BatchNormOptions options = {});
Tensor batch_norm(const Arg& x, const Arg& running_mean, const Arg& running_variance, BatchNormOptions options = {});

}  // namespace reel
