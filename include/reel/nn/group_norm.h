#pragma once

#include <reel/nn/module.h>
#include <reel/ops/normalise.h>

namespace reel::nn {

/// Options of GroupNorm.
struct GroupNormLayerOptions {
  /// ε, added to the variance; at least 0. Default 10⁻⁵.
  double epsilon = 1e-5;
  /// Whether there are a weight and a bias; without, they are 1 and 0. Default true.
  bool affine = true;
  Layout layout = Layout::nchw;  ///< where the channels of x are; default (N, C, d…)
  DType dtype = DType::f32;      ///< the parameters' dtype, floating; default f32
};

/// Group normalisation y = (x − mean) / √(variance + ε) · weight + bias, with each example's mean and variance over the
/// channels of a group, of x: (N, channels, d…): `group_norm` with a weight initialised with 1 and a bias initialised
/// with 0.
/// Source: PyTorch's GroupNorm.
struct GroupNorm : Module {
  Parameter weight;  ///< (channels); undefined unless affine
  Parameter bias;    ///< (channels); undefined unless affine

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless both numbers are positive and the groups divide the channels.
  GroupNorm(std::int64_t groups, std::int64_t channels, GroupNormLayerOptions options = {},
            Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless both numbers are
  /// positive and the groups divide the channels.
  GroupNorm(Module& parent, std::string_view name, std::int64_t groups, std::int64_t channels,
            GroupNormLayerOptions options = {}, Location where = Location::here())
      : GroupNorm(groups, channels, options, where) {
    join(parent, name, where);
  }

  /// The normalised x. Throws: ShapeError unless x has these channels; DTypeError unless x is floating.
  Tensor operator()(const Arg& x) const;

 private:
  std::int64_t groups_, channels_;
  reel::GroupNormOptions options_;
};

/// Options of InstanceNorm1d, InstanceNorm2d and InstanceNorm3d.
struct InstanceNormOptions {
  /// ε, added to the variance; at least 0. Default 10⁻⁵.
  double epsilon = 1e-5;
  /// Whether there are a weight, initialised with 1, and a bias, initialised with 0. Default false.
  bool affine = false;
  Layout layout = Layout::nchw;  ///< where the channels of x are; default (N, C, d…)
  DType dtype = DType::f32;      ///< the parameters' dtype, floating; default f32
};

/// The base class of InstanceNorm1d, InstanceNorm2d and InstanceNorm3d: y = (x − mean) / √(variance + ε) with each
/// example's and channel's mean and variance, for x: (N, channels, d…) with `axes` axes d, in training mode or not.
/// Source: PyTorch's InstanceNorm1d, InstanceNorm2d and InstanceNorm3d, without running statistics.
template <int axes>
struct InstanceNorm : Module {
  Parameter weight;  ///< (channels); undefined unless affine
  Parameter bias;    ///< (channels); undefined unless affine

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless `channels` is positive.
  explicit InstanceNorm(std::int64_t channels, InstanceNormOptions options = {}, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless `channels` is
  /// positive.
  InstanceNorm(Module& parent, std::string_view name, std::int64_t channels, InstanceNormOptions options = {},
               Location where = Location::here())
      : InstanceNorm(channels, options, where) {
    join(parent, name, where);
  }

  /// The normalised x.
  /// Throws: ShapeError for another rank or number of channels, and for channels of one element; DTypeError unless x is
  /// floating.
  Tensor operator()(const Arg& x) const;

 private:
  std::int64_t channels_;
  reel::GroupNormOptions options_;
};

/// Instance normalisation of x: (N, C, L), or with Layout::nhwc the channels last: y = (x − mean) / √(variance + ε),
/// times a weight plus a bias if affine, with each example's and channel's mean and variance.
/// Source: PyTorch's InstanceNorm1d, without running statistics.
struct InstanceNorm1d : InstanceNorm<1> {
  /// The constructors of the base class.
  using InstanceNorm<1>::InstanceNorm;
};
/// Instance normalisation of x: (N, C, H, W), or with Layout::nhwc the channels last: y = (x − mean) / √(variance + ε),
/// times a weight plus a bias if affine, with each example's and channel's mean and variance.
/// Source: PyTorch's InstanceNorm2d, without running statistics.
struct InstanceNorm2d : InstanceNorm<2> {
  /// The constructors of the base class.
  using InstanceNorm<2>::InstanceNorm;
};
/// Instance normalisation of x: (N, C, D, H, W), or with Layout::nhwc the channels last: y = (x − mean) / √(variance +
/// ε), times a weight plus a bias if affine, with each example's and channel's mean and variance.
/// Source: PyTorch's InstanceNorm3d, without running statistics.
struct InstanceNorm3d : InstanceNorm<3> {
  /// The constructors of the base class.
  using InstanceNorm<3>::InstanceNorm;
};

}  // namespace reel::nn
