#include <reel/distributions/gamma.h>

#include <reel/ops.h>
#include <reel/ops/stop_gradient.h>

#include "../ops/if_needed.h"
#include "../ops/operand.h"
#include "distribution.h"
#include "standard_gamma.h"

namespace reel::distributions {

using namespace detail;

namespace {

constexpr const char* gamma_name = "Gamma";

}  // namespace

Gamma::Gamma(const Arg& concentration, const Arg& rate) {
  OpScope caller(concentration.location(), gamma_name);
  auto [first, second] = parameters_of(gamma_name, "concentration", concentration, "rate", rate);
  check_positive(gamma_name, "concentration", first, concentration.location());
  check_positive(gamma_name, "rate", second, concentration.location());
  concentration_ = first;
  rate_ = second;
}

Tensor Gamma::mean(Location where) const {
  OpScope caller(where, gamma_name);
  return concentration_ / rate_;
}

Tensor Gamma::variance(Location where) const {
  OpScope caller(where, gamma_name);
  return concentration_ / square(rate_);
}

Tensor Gamma::sample(const Shape& sample_shape, DrawOptions options, Location where) const {
  return stop_gradient(rsample(sample_shape, options, where));
}

Tensor Gamma::rsample(const Shape& sample_shape, DrawOptions options, Location where) const {
  OpScope caller(where, gamma_name);
  Tensor alpha = expand(concentration_, shape_of_samples(sample_shape, batch_shape(), where));
  Tensor z = exp(log_standard_gamma(alpha, options.generator)) / rate_;
  return clamp(nan_to_num(to_if_needed(z, rate_.dtype())), smallest_normal(rate_.dtype()));
}

Tensor Gamma::log_prob(const Arg& x) const {
  OpScope caller(x.location(), gamma_name);
  const Tensor& given = tensor_of(gamma_name, x);
  check_support(gamma_name, given >= 0, "at least 0", x.location());
  Tensor a = widened(concentration_), b = widened(rate_), value = widened(given);
  return rounded_once(a * log(b) + xlogy(a - 1, value) - b * value - lgamma(a),
                      common_dtype(gamma_name, x, concentration_));
}

Tensor Gamma::entropy(Location where) const {
  OpScope caller(where, gamma_name);
  return concentration_ - log(rate_) + lgamma(concentration_) + (1 - concentration_) * digamma(concentration_);
}

Tensor kl_divergence(const Gamma& p, const Gamma& q, Location where) {
  OpScope caller(where, "kl_divergence");
  const Tensor &a = p.concentration(), &b = q.concentration();
  return b * log(p.rate() / q.rate()) + lgamma(b) - lgamma(a) + (a - b) * digamma(a) +
         (q.rate() - p.rate()) * (a / p.rate());
}

}  // namespace reel::distributions
