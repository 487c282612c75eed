#include <reel/nn/activation.h>
#include <reel/ops/activation.h>

#include "../core/op_error.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* prelu_name = "PReLU";

Shape channels_of(std::int64_t channels, Location where) {
  if (channels <= 0) fail<ShapeError>(prelu_name, where, "there must be a channel, not {}", channels);
  return {channels};
}

}  // namespace

PReLU::PReLU(std::int64_t channels, PReLUOptions options, Location where)
    : weight(*this, "weight", channels_of(channels, where), constant(options.slope), {.dtype = options.dtype}, where) {}

Tensor PReLU::operator()(const Arg& x) const {
  return call(prelu_name, x, [&](const Tensor& x) {
    if (weight.numel() > 1 && (x.rank() < 2 || x.size(1) != weight.numel()))
      fail<ShapeError>(prelu_name, {}, "x {} does not have the {} channels of the slopes on axis 1",
                       to_string(x.shape()), weight.numel());
    return prelu(x, weight);
  });
}

}  // namespace reel::nn
