#pragma once

#include <reel/ops/layout.h>
#include <reel/tensor.h>

/// \file
/// Normalisations. Statistics are computed in f64 about a number close to the mean, so that large elements that differ
/// little keep their differences; bf16 and f16 are computed in f32 and rounded once. Weights and biases have x's dtype,
/// or f32 beside bf16 and f16; without, they are 1 and 0.

namespace reel {

/// Options of `layer_norm` and `rms_norm`.
struct NormaliseOptions {
  /// ε, added to the variance or mean square; at least 0. Default 10⁻⁵.
  double epsilon = 1e-5;
};

/// y = (x − mean) / √(variance + ε) · weight + bias, over the last axes of x, whose sizes are `normalised`: at least
/// one axis; weight, bias: (normalised…). The variance is Σ (x − mean)² / n.
/// Throws: ShapeError unless the shapes fit; DTypeError unless x is floating, or for a weight or bias of another dtype;
/// Error for a negative epsilon; DeviceError.
/// Source: Ba, Kiros & Hinton, Layer normalization (2016); PyTorch's layer_norm.
Tensor layer_norm(const Arg& x, const Shape& normalised, const Arg& weight, const Arg& bias,
                  NormaliseOptions options = {});
/// y = (x − mean) / √(variance + ε) · weight, over the last axes of x, whose sizes are `normalised`: at least one axis;
/// weight: (normalised…). The variance is Σ (x − mean)² / n.
/// Throws: ShapeError unless the shapes fit; DTypeError unless x is floating, or for a weight or bias of another dtype;
/// Error for a negative epsilon; DeviceError.
/// Source: Ba, Kiros & Hinton, Layer normalization (2016); PyTorch's layer_norm.
Tensor layer_norm(const Arg& x, const Shape& normalised, const Arg& weight, NormaliseOptions options = {});
/// y = (x − mean) / √(variance + ε), over the last axes of x, whose sizes are `normalised`: at least one axis. The
/// variance is Σ (x − mean)² / n.
/// Throws: ShapeError unless the shapes fit; DTypeError unless x is floating; Error for a negative epsilon;
/// DeviceError.
/// Source: Ba, Kiros & Hinton, Layer normalization (2016); PyTorch's layer_norm.
Tensor layer_norm(const Arg& x, const Shape& normalised, NormaliseOptions options = {});

/// y = x / √(mean(x²) + ε) · weight, over the last axes of x, whose sizes are `normalised`: at least one axis; weight:
/// (normalised…).
/// Throws: ShapeError unless the shapes fit; DTypeError unless x is floating, or for a weight of another dtype; Error
/// for a negative epsilon; DeviceError.
/// Source: Zhang & Sennrich, Root mean square layer normalization (2019); PyTorch's rms_norm, whose default ε is the
/// dtype's machine epsilon.
Tensor rms_norm(const Arg& x, const Shape& normalised, const Arg& weight, NormaliseOptions options = {});
/// y = x / √(mean(x²) + ε), over the last axes of x, whose sizes are `normalised`: at least one axis.
/// Throws: ShapeError unless the shapes fit; DTypeError unless x is floating; Error for a negative epsilon;
/// DeviceError.
/// Source: Zhang & Sennrich, Root mean square layer normalization (2019); PyTorch's rms_norm, whose default ε is the
/// dtype's machine epsilon.
Tensor rms_norm(const Arg& x, const Shape& normalised, NormaliseOptions options = {});

/// Options of `group_norm` and `instance_norm`.
struct GroupNormOptions {
  /// ε, added to the variance; at least 0. Default 10⁻⁵.
  double epsilon = 1e-5;
  Layout layout = Layout::nchw;  ///< where the channels of x are; default (N, C, d…)
};

/// y = (x − mean) / √(variance + ε) · weight + bias, where each example's mean and variance are taken over the channels
/// of a group; C / groups neighbouring channels make a group: x: (N, C, d…), or in nhwc (N, d…, C); weight, bias: (C).
/// Throws: ShapeError unless x has rank 2 or more, `groups` divides C and the shapes fit; DTypeError unless x is
/// floating, or for a weight or bias of another dtype; Error for a negative epsilon; DeviceError.
/// Source: Wu & He, Group normalization (2018); PyTorch's group_norm.
Tensor group_norm(const Arg& x, std::int64_t groups, const Arg& weight, const Arg& bias, GroupNormOptions options = {});
/// y = (x − mean) / √(variance + ε), where each example's mean and variance are taken over the channels of a group; C /
/// groups neighbouring channels make a group: x: (N, C, d…), or in nhwc (N, d…, C).
/// Throws: ShapeError unless x has rank 2 or more and `groups` divides C; DTypeError unless x is floating; Error for a
/// negative epsilon; DeviceError.
/// Source: Wu & He, Group normalization (2018); PyTorch's group_norm.
Tensor group_norm(const Arg& x, std::int64_t groups, GroupNormOptions options = {});

/// y = (x − mean) / √(variance + ε) · weight + bias, where each example's mean and variance are taken over each channel
/// by itself: x: (N, C, d…), or in nhwc (N, d…, C); weight, bias: (C).
/// Throws: ShapeError unless x has rank 3 or more, a channel more than one element, and the shapes fit; DTypeError
/// unless x is floating, or for a weight or bias of another dtype; Error for a negative epsilon; DeviceError.
/// Source: Ulyanov, Vedaldi & Lempitsky, Instance normalization (2016); PyTorch's instance_norm.
Tensor instance_norm(const Arg& x, const Arg& weight, const Arg& bias, GroupNormOptions options = {});
/// y = (x − mean) / √(variance + ε), where each example's mean and variance are taken over each channel by itself: x:
/// (N, C, d…), or in nhwc (N, d…, C).
/// Throws: ShapeError unless x has rank 3 or more and a channel more than one element; DTypeError unless x is floating;
/// Error for a negative epsilon; DeviceError.
/// Source: Ulyanov, Vedaldi & Lempitsky, Instance normalization (2016); PyTorch's instance_norm.
Tensor instance_norm(const Arg& x, GroupNormOptions options = {});

/// Options of `batch_norm`.
struct BatchNormOptions {
  /// Whether to use the statistics of the batch, and to update the running ones; else the running ones are used.
  /// Default false.
  bool training = false;
  /// The share of the batch in the running statistics. Default 0.1.
  double momentum = 0.1;
  /// ε, added to the variance; at least 0. Default 10⁻⁵.
  double epsilon = 1e-5;
  Layout layout = Layout::nchw;  ///< where the channels of x are; default (N, C, d…)
};

/// y = (x − mean) / √(variance + ε) · weight + bias, by channel: x: (N, C) or (N, C, d…), in nhwc (N, d…, C); weight,
/// bias and running statistics: (C). In training, mean and variance, Σ (x − mean)² / n, are those of the batch over the
/// other axes, and the tensors of the running ones are overwritten by (1 − momentum) running + momentum batch, with the
/// variance of Σ (x − mean)² / (n − 1). Otherwise mean and variance are the running ones. Running statistics are of x's
/// dtype or f32.
/// Throws: ShapeError unless x has rank 2 or more and the shapes fit, and in training a channel has more than one
/// element; DTypeError unless x is floating, or for a weight or bias of another dtype; Error for a negative epsilon;
/// DeviceError.
/// Source: Ioffe & Szegedy, Batch normalization (2015); PyTorch's batch_norm.
Tensor batch_norm(const Arg& x, const Arg& weight, const Arg& bias, const Arg& running_mean,
                  const Arg& running_variance, BatchNormOptions options = {});
/// y = (x − mean) / √(variance + ε), by channel: x: (N, C) or (N, C, d…), in nhwc (N, d…, C); running statistics: (C).
/// In training, mean and variance, Σ (x − mean)² / n, are those of the batch over the other axes, and the tensors of
/// the running ones are overwritten by (1 − momentum) running + momentum batch, with the variance of Σ (x − mean)² / (n
/// − 1). Otherwise mean and variance are the running ones. Running statistics are of x's dtype or f32.
/// Throws: ShapeError unless x has rank 2 or more and the shapes fit, and in training a channel has more than one
/// element; DTypeError unless x is floating, or for running statistics of another dtype; Error for a negative epsilon;
/// DeviceError.
/// Source: Ioffe & Szegedy, Batch normalization (2015); PyTorch's batch_norm.
Tensor batch_norm(const Arg& x, const Arg& running_mean, const Arg& running_variance, BatchNormOptions options = {});

/// Options of `normalize`.
struct NormalizeOptions {
  double p = 2;            ///< the order of the norm; default 2
  int axis = 1;            ///< the axis of the vectors' elements; default 1
  double epsilon = 1e-12;  ///< ε: the least divisor; at least 0. Default 10⁻¹²
};

/// x / max(‖x‖_p, ε), with norms along an axis; bf16 and f16 are rounded once.
/// Throws: ShapeError for an axis that does not exist; DTypeError unless x is floating; Error if p is NaN and for a
/// negative ε.
/// Source: PyTorch's normalize.
Tensor normalize(const Arg& x, NormalizeOptions options = {});

/// Options of `local_response_norm`.
struct LocalResponseNormOptions {
  double alpha = 1e-4;  ///< α; default 10⁻⁴
  double beta = 0.75;   ///< β; default 0.75
  double k = 1;         ///< default 1
};

/// x / (k + α / size · Σ x²)^β, where the sum is over `size` neighbouring channels, ⌊size / 2⌋ of them before the
/// element's own; channels beyond the ends are 0: x: (N, C, d…). bf16 and f16 are rounded once.
/// Throws: ShapeError unless x has rank 3 or more and the size is at least 1; DTypeError unless x is floating.
/// Source: Krizhevsky et al., ImageNet classification with deep convolutional neural networks (NeurIPS 2012).
Tensor local_response_norm(const Arg& x, std::int64_t size, LocalResponseNormOptions options = {});

}  // namespace reel
