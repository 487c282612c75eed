#pragma once

#include <reel/nn/module.h>
#include <reel/ops/normalise.h>

namespace reel::nn {

struct GroupNormOptions {
  /// At least 0.
  double epsilon = 1e-5;
  /// Whether there are a weight and a bias; without, they count as 1 and 0.
  bool affine = true;
  Layout layout = Layout::nchw;
  DType dtype = DType::f32;
};

/// `group_norm` with a weight that starts at 1 and a bias that starts at 0. Source: PyTorch's GroupNorm.
struct GroupNorm : Module {
  Parameter weight;  ///< (channels)
  Parameter bias;    ///< (channels)

  /// Throws: ShapeError unless both numbers are positive and the groups divide the channels.
  GroupNorm(std::int64_t groups, std::int64_t channels, GroupNormOptions options = {},
            Location where = Location::here());
  GroupNorm(Module& parent, std::string_view name, std::int64_t groups, std::int64_t channels,
            GroupNormOptions options = {}, Location where = Location::here())
      : GroupNorm(groups, channels, options, where) {
    join(parent, name, where);
  }

  /// Throws: ShapeError unless x has these channels.
  Tensor operator()(const Arg& x) const;

 private:
  std::int64_t groups_, channels_;
  reel::GroupNormOptions options_;
};

struct InstanceNormOptions {
  /// At least 0.
  double epsilon = 1e-5;
  /// Whether there are a weight, which starts at 1, and a bias, which starts at 0.
  bool affine = false;
  Layout layout = Layout::nchw;
  DType dtype = DType::f32;
};

/// What InstanceNorm1d, InstanceNorm2d and InstanceNorm3d are: `instance_norm` of x: (N, channels, d…) with so many axes d,
/// in training and afterwards alike. Source: PyTorch's InstanceNorm1d and so on, without running statistics.
template <int axes>
struct InstanceNorm : Module {
  Parameter weight;  ///< (channels); undefined unless affine
  Parameter bias;    ///< (channels); undefined unless affine

  /// Throws: ShapeError unless there is a channel.
  explicit InstanceNorm(std::int64_t channels, InstanceNormOptions options = {}, Location where = Location::here());
  InstanceNorm(Module& parent, std::string_view name, std::int64_t channels, InstanceNormOptions options = {},
               Location where = Location::here())
      : InstanceNorm(channels, options, where) {
    join(parent, name, where);
  }

  /// Throws: ShapeError for another rank or number of channels.
  Tensor operator()(const Arg& x) const;

 private:
  std::int64_t channels_;
  reel::GroupNormOptions options_;
};

struct InstanceNorm1d : InstanceNorm<1> {
  using InstanceNorm<1>::InstanceNorm;
};
struct InstanceNorm2d : InstanceNorm<2> {
  using InstanceNorm<2>::InstanceNorm;
};
struct InstanceNorm3d : InstanceNorm<3> {
  using InstanceNorm<3>::InstanceNorm;
};

}  // namespace reel::nn
