#pragma once

#include <reel/nn/module.h>
#include <reel/ops/normalise.h>

namespace reel::nn {

struct BatchNormOptions {
  /// The share of the batch in the running statistics.
  double momentum = 0.1;
  /// At least 0.
  double epsilon = 1e-5;
  /// Whether there are a weight and a bias; without, they count as 1 and 0.
  bool affine = true;
  /// Whether running statistics are kept and used after training; otherwise those of the batch are always used.
  bool track_running_statistics = true;
  Layout layout = Layout::nchw;
  DType dtype = DType::f32;
};

/// What BatchNorm1d, BatchNorm2d and BatchNorm3d are: `batch_norm` of x: (N, channels, d…) with so many axes d; one may be
/// missing in BatchNorm1d. In training it takes the statistics of the batch and updates the running ones, afterwards it
/// takes those. The weight and the running variance start at 1, all else at 0. Source: PyTorch's BatchNorm1d and so on.
template <int axes>
struct BatchNorm : Module {
  Parameter weight;         ///< (channels)
  Parameter bias;           ///< (channels)
  Buffer running_mean;      ///< (channels)
  Buffer running_variance;  ///< (channels)

  /// Throws: ShapeError unless there is a channel.
  explicit BatchNorm(std::int64_t channels, BatchNormOptions options = {}, Location where = Location::here());
  BatchNorm(Module& parent, std::string_view name, std::int64_t channels, BatchNormOptions options = {},
            Location where = Location::here())
      : BatchNorm(channels, options, where) {
    join(parent, name, where);
  }

  /// Throws: ShapeError for another rank or number of channels; in training, unless a channel has more than one element.
  Tensor operator()(const Arg& x) const;

 private:
  std::int64_t channels_;
  bool tracks_;
  reel::BatchNormOptions options_;
};

struct BatchNorm1d : BatchNorm<1> {
  using BatchNorm<1>::BatchNorm;
};
struct BatchNorm2d : BatchNorm<2> {
  using BatchNorm<2>::BatchNorm;
};
struct BatchNorm3d : BatchNorm<3> {
  using BatchNorm<3>::BatchNorm;
};

}  // namespace reel::nn
