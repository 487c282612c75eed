#include <reel/distributions/gumbel.h>

#include <numbers>

#include <reel/ops.h>
#include <reel/ops/stop_gradient.h>

#include "distribution.h"

namespace reel::distributions {

using namespace detail;

namespace {

constexpr const char* gumbel_name = "Gumbel";

}  // namespace

Gumbel::Gumbel(const Arg& loc, const Arg& scale) {
  OpScope caller(loc.location(), gumbel_name);
  auto [first, second] = parameters_of(gumbel_name, "loc", loc, "scale", scale);
  check_positive(gumbel_name, "scale", second, loc.location());
  loc_ = first;
  scale_ = second;
}

Tensor Gumbel::mean(Location where) const {
  OpScope caller(where, gumbel_name);
  return loc_ + euler_mascheroni * scale_;
}

Tensor Gumbel::variance(Location where) const {
  OpScope caller(where, gumbel_name);
  return (std::numbers::pi * std::numbers::pi / 6) * square(scale_);
}

Tensor Gumbel::sample(const Shape& sample_shape, DrawOptions options, Location where) const {
  return stop_gradient(rsample(sample_shape, options, where));
}

Tensor Gumbel::rsample(const Shape& sample_shape, DrawOptions options, Location where) const {
  OpScope caller(where, gumbel_name);
  Tensor noise = gumbel(shape_of_samples(sample_shape, batch_shape(), where),
                        {.dtype = loc_.dtype(), .device = loc_.device(), .generator = options.generator});
  return loc_ + scale_ * noise;
}

Tensor Gumbel::log_prob(const Arg& x) const {
  OpScope caller(x.location(), gumbel_name);
  Tensor z = (x - loc_) / scale_;
  return -z - exp(-z) - log(scale_);
}

Tensor Gumbel::entropy(Location where) const {
  OpScope caller(where, gumbel_name);
  return log(scale_) + (1 + euler_mascheroni);
}

Tensor kl_divergence(const Gumbel& p, const Gumbel& q, Location where) {
  OpScope caller(where, "kl_divergence");
  Tensor ratio = p.scale() / q.scale(), distance = (p.loc() - q.loc()) / q.scale();
  return euler_mascheroni * (ratio - 1) - log(ratio) + distance + exp(lgamma(1 + ratio) - distance) - 1;
}

}  // namespace reel::distributions
