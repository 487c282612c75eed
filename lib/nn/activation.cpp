#include <reel/nn/activation.h>
#include <reel/ops/comparison.h>
#include <reel/ops/index.h>
#include <reel/ops/shape.h>

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
    Tensor slope = weight;
    if (weight.numel() > 1) {
      if (x.rank() < 2 || x.size(1) != weight.numel())
        fail<ShapeError>(prelu_name, {}, "x {} does not have the {} channels of the slopes on axis 1",
                         to_string(x.shape()), weight.numel());
      Shape behind{weight.numel()};
      for (int axis = 2; axis < x.rank(); ++axis) behind.push_back(1);
      slope = reshape(weight, behind);
    } else {
      slope = reshape(weight, {});
    }
    return where(x > 0, x, slope * x);
  });
}

}  // namespace reel::nn
