#include <reel/nn/rms_norm.h>
#include <reel/ops/normalise.h>

#include "normalised.h"
#include "weight_dtype.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* rms_norm_name = "RMSNorm";

}  // namespace

RMSNorm::RMSNorm(const Shape& normalised, RMSNormOptions options, Location where)
    : normalised_(checked_sizes(rms_norm_name, normalised, where)), epsilon_(options.epsilon) {
  if (options.affine) weight = Parameter(*this, "weight", normalised, constant(1), {.dtype = options.dtype}, where);
}

Tensor RMSNorm::operator()(const Arg& x) const {
  return call(rms_norm_name, x, [&](const Tensor& x) {
    check_weight_dtype(rms_norm_name, x, weight);
    if (!weight.defined()) return rms_norm(x, normalised_, {.epsilon = epsilon_});
    return rms_norm(x, normalised_, weight, {.epsilon = epsilon_});
  });
}

}  // namespace reel::nn
