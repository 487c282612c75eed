#pragma once

#include <reel/nn/module.h>
#include <reel/ops/normalise.h>

namespace reel::nn {

/// Options of BatchNorm1d, BatchNorm2d and BatchNorm3d.
struct BatchNormLayerOptions {
  /// The share of the batch in the running statistics. Default 0.1.
  double momentum = 0.1;
  /// ε, added to the variance; at least 0. Default 10⁻⁵.
  double epsilon = 1e-5;
  /// Whether there are a weight and a bias; without, they are 1 and 0. Default true.
  bool affine = true;
  /// Whether running statistics are kept and used outside training; else those of the batch are always used. Default
  /// true.
  bool track_running_statistics = true;
  Layout layout = Layout::nchw;  ///< where the channels of x are; default (N, C, d…)
  DType dtype = DType::f32;      ///< the parameters' dtype, floating; default f32
};

/// The base class of BatchNorm1d, BatchNorm2d and BatchNorm3d: y = (x − mean) / √(variance + ε) · weight + bias by
/// channel, for x: (N, channels, d…) with `axes` axes d, which BatchNorm1d may lack. In training it uses the statistics
/// of the batch and updates the running ones, otherwise it uses the running ones. The weight and the running variance
/// are initialised with 1, all else with 0.
/// Source: PyTorch's BatchNorm1d, BatchNorm2d and BatchNorm3d.
template <int axes>
struct BatchNorm : Module {
  Parameter weight;         ///< (channels); undefined unless affine
  Parameter bias;           ///< (channels); undefined unless affine
  Buffer running_mean;      ///< (channels); undefined unless tracked
  Buffer running_variance;  ///< (channels); undefined unless tracked

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless `channels` is positive.
  explicit BatchNorm(std::int64_t channels, BatchNormLayerOptions options = {}, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless `channels` is
  /// positive.
  BatchNorm(Module& parent, std::string_view name, std::int64_t channels, BatchNormLayerOptions options = {},
            Location where = Location::here())
      : BatchNorm(channels, options, where) {
    join(parent, name, where);
  }

  /// The normalised x.
  /// Throws: ShapeError for another rank or number of channels, and in training unless a channel has more than one
  /// element; DTypeError unless x is floating.
  Tensor operator()(const Arg& x) const;

 private:
  std::int64_t channels_;
  bool tracks_;
  reel::BatchNormOptions options_;
};

/// Batch normalisation of x: (N, C) or (N, C, L), or with Layout::nhwc the channels last: y = (x − mean) / √(variance +
/// ε) · weight + bias by channel. In training it uses the statistics of the batch and updates the running ones,
/// otherwise it uses the running ones.
/// Source: PyTorch's BatchNorm1d.
struct BatchNorm1d : BatchNorm<1> {
  /// The constructors of the base class.
  using BatchNorm<1>::BatchNorm;
};
/// Batch normalisation of x: (N, C, H, W), or with Layout::nhwc the channels last: y = (x − mean) / √(variance + ε) ·
/// weight + bias by channel. In training it uses the statistics of the batch and updates the running ones, otherwise it
/// uses the running ones.
/// Source: PyTorch's BatchNorm2d.
struct BatchNorm2d : BatchNorm<2> {
  /// The constructors of the base class.
  using BatchNorm<2>::BatchNorm;
};
/// Batch normalisation of x: (N, C, D, H, W), or with Layout::nhwc the channels last: y = (x − mean) / √(variance + ε)
/// · weight + bias by channel. In training it uses the statistics of the batch and updates the running ones, otherwise
/// it uses the running ones.
/// Source: PyTorch's BatchNorm3d.
struct BatchNorm3d : BatchNorm<3> {
  /// The constructors of the base class.
  using BatchNorm<3>::BatchNorm;
};

}  // namespace reel::nn
