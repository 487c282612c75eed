#include <reel/distributions/beta.h>

#include <reel/ops.h>
#include <reel/ops/stop_gradient.h>

#include "../ops/if_needed.h"
#include "../ops/operand.h"
#include "distribution.h"
#include "standard_gamma.h"

namespace reel::distributions {

using namespace detail;

namespace {

constexpr const char* beta_name = "Beta";

// log B(α, β)
Tensor log_beta(const Tensor& a, const Tensor& b) { return lgamma(a) + lgamma(b) - lgamma(a + b); }

}  // namespace

Beta::Beta(const Arg& concentration1, const Arg& concentration0) {
  OpScope caller(concentration1.location(), beta_name);
  auto [first, second] = parameters_of(beta_name, "concentration1", concentration1, "concentration0", concentration0);
  check_positive(beta_name, "concentration1", first, concentration1.location());
  check_positive(beta_name, "concentration0", second, concentration1.location());
  concentration1_ = first;
  concentration0_ = second;
}

Tensor Beta::mean(Location where) const {
  OpScope caller(where, beta_name);
  return concentration1_ / (concentration1_ + concentration0_);
}

Tensor Beta::variance(Location where) const {
  OpScope caller(where, beta_name);
  Tensor total = concentration1_ + concentration0_;
  return (concentration1_ / total) * (concentration0_ / total) / (total + 1);
}

Tensor Beta::sample(const Shape& sample_shape, DrawOptions options, Location where) const {
  return stop_gradient(rsample(sample_shape, options, where));
}

Tensor Beta::rsample(const Shape& sample_shape, DrawOptions options, Location where) const {
  OpScope caller(where, beta_name);
  Shape shape = shape_of_samples(sample_shape, batch_shape(), where);
  Tensor one = log_standard_gamma(expand(concentration1_, shape), options.generator);
  Tensor zero = log_standard_gamma(expand(concentration0_, shape), options.generator);
  return inside_unit_interval(sigmoid(one - zero), concentration1_.dtype());
}

Tensor Beta::log_prob(const Arg& x) const {
  OpScope caller(x.location(), beta_name);
  const Tensor& given = tensor_of(beta_name, x);
  check_support(beta_name, logical_and(given >= 0, given <= 1), "in [0, 1]", x.location());
  Tensor a = widened(concentration1_), b = widened(concentration0_), value = widened(given);
  return rounded_once(xlogy(a - 1, value) + xlogy(b - 1, 1 - value) - log_beta(a, b),
                      common_dtype(beta_name, x, concentration1_));
}

Tensor Beta::entropy(Location where) const {
  OpScope caller(where, beta_name);
  const Tensor &a = concentration1_, &b = concentration0_;
  return log_beta(a, b) - (a - 1) * digamma(a) - (b - 1) * digamma(b) + (a + b - 2) * digamma(a + b);
}

Tensor kl_divergence(const Beta& p, const Beta& q, Location where) {
  OpScope caller(where, "kl_divergence");
  Tensor one = p.concentration1() - q.concentration1(), zero = p.concentration0() - q.concentration0();
  return log_beta(q.concentration1(), q.concentration0()) - log_beta(p.concentration1(), p.concentration0()) +
         one * digamma(p.concentration1()) + zero * digamma(p.concentration0()) -
         (one + zero) * digamma(p.concentration1() + p.concentration0());
}

}  // namespace reel::distributions
