#include <reel/nn/batch_norm.h>
#include <reel/ops/create.h>

#include "../core/op_error.h"
#include "weight_dtype.h"

namespace reel::nn {

using namespace detail;

namespace {

template <int axes>
constexpr const char* batch_norm_name = axes == 1   ? "BatchNorm1d"
                                        : axes == 2 ? "BatchNorm2d"
                                                    : "BatchNorm3d";

}  // namespace

template <int axes>
BatchNorm<axes>::BatchNorm(std::int64_t channels, BatchNormLayerOptions options, Location where)
    : channels_(channels),
      tracks_(options.track_running_statistics),
      options_{.momentum = options.momentum, .epsilon = options.epsilon, .layout = options.layout} {
  if (channels <= 0) fail<ShapeError>(batch_norm_name<axes>, where, "there must be a channel, not {}", channels);
  if (options.affine) {
    weight = Parameter(*this, "weight", {channels}, constant(1), {.dtype = options.dtype}, where);
    bias = Parameter(*this, "bias", {channels}, constant(0), {.dtype = options.dtype}, where);
  }
  if (tracks_) {
    running_mean = Buffer(*this, "running_mean", zeros({channels}, {.dtype = options.dtype}), where);
    running_variance = Buffer(*this, "running_variance", ones({channels}, {.dtype = options.dtype}), where);
  }
}

template <int axes>
Tensor BatchNorm<axes>::operator()(const Arg& x) const {
  return call(batch_norm_name<axes>, x, [&](const Tensor& x) {
    bool fits = x.rank() == axes + 2 || (axes == 1 && x.rank() == 2);
    if (!fits || x.size(options_.layout == Layout::nchw ? 1 : -1) != channels_)
      fail<ShapeError>(batch_norm_name<axes>, {}, "x {} is no batch of {} channels with {}{} other axes",
                       to_string(x.shape()), channels_, axes == 1 ? "0 or " : "", axes);
    for (const Tensor* own : {static_cast<const Tensor*>(&weight), static_cast<const Tensor*>(&running_mean)})
      check_weight_dtype(batch_norm_name<axes>, x, *own);
    reel::BatchNormOptions options = options_;
    options.training = is_training() || !tracks_;
    Tensor mean = running_mean, variance = running_variance;
    if (!tracks_) {
      TensorOptions like_x{.dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32, .device = x.device()};
      mean = zeros({channels_}, like_x);
      variance = ones({channels_}, like_x);
    }
    return weight.defined() ? batch_norm(x, weight, bias, mean, variance, options)
                            : batch_norm(x, mean, variance, options);
  });
}

template struct BatchNorm<1>;
template struct BatchNorm<2>;
template struct BatchNorm<3>;

}  // namespace reel::nn
