#include <reel/distributions/kl_divergence.h>

#include <limits>

#include <reel/ops.h>

#include "distribution.h"

namespace reel::distributions {

using namespace detail;

namespace {

constexpr const char* kl_name = "kl_divergence";

template <class P>
Tensor divergence_from_normal(const P& p, const Normal& q, Location where) {
  OpScope caller(where, kl_name);
  return 0.5 * (p.variance() + square(p.mean() - q.mean())) / q.variance() + log(q.stddev()) + half_log_2pi -
         p.entropy();
}

// The divergence of any p from a Gumbel distribution: `moment` is E[e^(−(x − μ) / s)] under p.
template <class P>
Tensor divergence_from_gumbel(const P& p, const Gumbel& q, const Tensor& moment) {
  return log(q.scale()) + (p.mean() - q.loc()) / q.scale() + moment - p.entropy();
}

}  // namespace

Tensor kl_divergence(const Bernoulli& p, const Poisson& q, Location where) {
  OpScope caller(where, kl_name);
  return q.rate() - xlogy(p.mean(), q.rate()) - p.entropy();
}

Tensor kl_divergence(const Beta& p, const Gamma& q, Location where) {
  OpScope caller(where, kl_name);
  Tensor log_mean = digamma(p.concentration1()) - digamma(p.concentration1() + p.concentration0());
  return q.rate() * p.mean() - (q.concentration() - 1) * log_mean - q.concentration() * log(q.rate()) +
         lgamma(q.concentration()) - p.entropy();
}

Tensor kl_divergence(const Beta& p, const Normal& q, Location where) { return divergence_from_normal(p, q, where); }

Tensor kl_divergence(const Beta& p, const Uniform& q, Location where) {
  OpScope caller(where, kl_name);
  return reel::where(logical_and(q.low() <= 0, q.high() >= 1), log(q.high() - q.low()) - p.entropy(),
                     std::numeric_limits<double>::infinity());
}

Tensor kl_divergence(const Gamma& p, const Gumbel& q, Location where) {
  OpScope caller(where, kl_name);
  return divergence_from_gumbel(p, q,
                                exp(q.loc() / q.scale() - p.concentration() * log1p(reciprocal(p.rate() * q.scale()))));
}

Tensor kl_divergence(const Gamma& p, const Normal& q, Location where) { return divergence_from_normal(p, q, where); }

Tensor kl_divergence(const Gumbel& p, const Normal& q, Location where) { return divergence_from_normal(p, q, where); }

Tensor kl_divergence(const Normal& p, const Gumbel& q, Location where) {
  OpScope caller(where, kl_name);
  return divergence_from_gumbel(p, q, exp((q.loc() - p.mean()) / q.scale() + 0.5 * square(p.stddev() / q.scale())));
}

Tensor kl_divergence(const Uniform& p, const Gumbel& q, Location where) {
  OpScope caller(where, kl_name);
  Tensor width = (p.high() - p.low()) / q.scale();
  return divergence_from_gumbel(p, q, exp((q.loc() - p.low()) / q.scale()) * -expm1(-width) / width);
}

Tensor kl_divergence(const Uniform& p, const Normal& q, Location where) { return divergence_from_normal(p, q, where); }

}  // namespace reel::distributions
