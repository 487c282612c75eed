#include <reel/distributions/normal.h>

#include <reel/ops.h>
#include <reel/ops/stop_gradient.h>

#include "../core/op_error.h"
#include "distribution.h"

namespace reel::distributions {

using namespace detail;

namespace {

constexpr const char* normal_name = "Normal";

}  // namespace

Normal::Normal(const Arg& loc, const Arg& scale) {
  OpScope caller(loc.location(), normal_name);
  if (!scale.is_tensor() && !(scale.number() > 0))
    fail<Error>(normal_name, loc.location(), "the standard deviation must be above 0, not {}", scale.number());
  auto [mean, deviation] = parameters_of(normal_name, "loc", loc, "scale", scale);
  loc_ = mean;
  scale_ = deviation;
}

Tensor Normal::variance(Location where) const {
  OpScope caller(where, normal_name);
  return square(scale_);
}

Tensor Normal::sample(const Shape& sample_shape, DrawOptions options, Location where) const {
  return stop_gradient(rsample(sample_shape, options, where));
}

Tensor Normal::rsample(const Shape& sample_shape, DrawOptions options, Location where) const {
  OpScope caller(where, normal_name);
  Tensor noise = randn(shape_of_samples(sample_shape, batch_shape(), where),
                       {.dtype = loc_.dtype(), .device = loc_.device(), .generator = options.generator});
  return loc_ + scale_ * noise;
}

Tensor Normal::log_prob(const Arg& x) const {
  OpScope caller(x.location(), normal_name);
  return -0.5 * square((x - loc_) / scale_) - log(scale_) - half_log_2pi;
}

Tensor Normal::entropy(Location where) const {
  OpScope caller(where, normal_name);
  return log(scale_) + (0.5 + half_log_2pi);
}

Tensor kl_divergence(const Normal& p, const Normal& q, Location where) {
  OpScope caller(where, "kl_divergence");
  Tensor ratio = p.stddev() / q.stddev();
  return 0.5 * (square(ratio) + square((p.mean() - q.mean()) / q.stddev()) - 1) - log(ratio);
}

}  // namespace reel::distributions
