#include <reel/nn/group_norm.h>

#include "../core/op_error.h"
#include "weight_dtype.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* group_name = "GroupNorm";
template <int axes>
constexpr const char* instance_name = axes == 1   ? "InstanceNorm1d"
                                      : axes == 2 ? "InstanceNorm2d"
                                                  : "InstanceNorm3d";

void make_affine(Module& module, Parameter& weight, Parameter& bias, std::int64_t channels, DType dtype,
                 Location where) {
  weight = Parameter(module, "weight", {channels}, constant(1), {.dtype = dtype}, where);
  bias = Parameter(module, "bias", {channels}, constant(0), {.dtype = dtype}, where);
}

bool has_channels(const Tensor& x, std::int64_t channels, Layout layout) {
  return x.rank() >= 2 && x.size(layout == Layout::nchw ? 1 : -1) == channels;
}

}  // namespace

GroupNorm::GroupNorm(std::int64_t groups, std::int64_t channels, GroupNormLayerOptions options, Location where)
    : groups_(groups), channels_(channels), options_{.epsilon = options.epsilon, .layout = options.layout} {
  if (groups <= 0 || channels <= 0 || channels % groups != 0)
    fail<ShapeError>(group_name, where, "{} channels cannot be cut into {} groups", channels, groups);
  if (options.affine) make_affine(*this, weight, bias, channels, options.dtype, where);
}

Tensor GroupNorm::operator()(const Arg& x) const {
  return call(group_name, x, [&](const Tensor& x) {
    if (!has_channels(x, channels_, options_.layout))
      fail<ShapeError>(group_name, {}, "x {} does not have {} channels", to_string(x.shape()), channels_);
    check_weight_dtype(group_name, x, weight);
    return weight.defined() ? group_norm(x, groups_, weight, bias, options_) : group_norm(x, groups_, options_);
  });
}

template <int axes>
InstanceNorm<axes>::InstanceNorm(std::int64_t channels, InstanceNormOptions options, Location where)
    : channels_(channels), options_{.epsilon = options.epsilon, .layout = options.layout} {
  if (channels <= 0) fail<ShapeError>(instance_name<axes>, where, "there must be a channel, not {}", channels);
  if (options.affine) make_affine(*this, weight, bias, channels, options.dtype, where);
}

template <int axes>
Tensor InstanceNorm<axes>::operator()(const Arg& x) const {
  return call(instance_name<axes>, x, [&](const Tensor& x) {
    if (x.rank() != axes + 2 || !has_channels(x, channels_, options_.layout))
      fail<ShapeError>(instance_name<axes>, {}, "x {} is no batch of {} channels with {} other axes",
                       to_string(x.shape()), channels_, axes);
    check_weight_dtype(instance_name<axes>, x, weight);
    return weight.defined() ? instance_norm(x, weight, bias, options_) : instance_norm(x, options_);
  });
}

template struct InstanceNorm<1>;
template struct InstanceNorm<2>;
template struct InstanceNorm<3>;

}  // namespace reel::nn
