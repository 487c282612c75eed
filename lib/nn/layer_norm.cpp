#include <reel/nn/layer_norm.h>
#include <reel/ops/normalise.h>

#include "normalised.h"
#include "weight_dtype.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* layer_norm_name = "LayerNorm";

}  // namespace

LayerNorm::LayerNorm(const Shape& normalised, LayerNormOptions options, Location where)
    : normalised_(checked_sizes(layer_norm_name, normalised, where)), epsilon_(options.epsilon) {
  if (!options.affine) return;
  weight = Parameter(*this, "weight", normalised, constant(1), {.dtype = options.dtype}, where);
  bias = Parameter(*this, "bias", normalised, constant(0), {.dtype = options.dtype}, where);
}

Tensor LayerNorm::operator()(const Arg& x) const {
  return call(layer_norm_name, x, [&](const Tensor& x) {
    check_weight_dtype(layer_norm_name, x, weight);
    if (!weight.defined()) return layer_norm(x, normalised_, {.epsilon = epsilon_});
    return layer_norm(x, normalised_, weight, bias, {.epsilon = epsilon_});
  });
}

}  // namespace reel::nn
