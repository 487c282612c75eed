#include <reel/distributions/bernoulli.h>

#include <limits>

#include <reel/ops.h>
#include <reel/ops/stop_gradient.h>

#include "../core/op_error.h"
#include "../ops/if_needed.h"
#include "../ops/operand.h"
#include "distribution.h"

namespace reel::distributions {

using namespace detail;

namespace {

constexpr const char* bernoulli_name = "Bernoulli";

// −|x|, with the derivative −1 in place of 0 at 0: even functions of it keep their second derivatives there.
Tensor inverted_magnitude(const Tensor& x) { return where(x < 0, x, -x); }

// a x, and 0 where a is 0 and x infinite or NaN.
Tensor weighted(const Tensor& a, const Tensor& x) {
  return a * where(logical_and(equal(a, 0), logical_not(isfinite(x))), 0, x);
}

}  // namespace

Bernoulli::Bernoulli(const BernoulliParameters& parameters, Location where) {
  OpScope caller(where, bernoulli_name);
  if (parameters.logits.defined() == parameters.probabilities.defined())
    fail<Error>(bernoulli_name, where, "either logits or probabilities must be given, not {}",
                parameters.logits.defined() ? "both" : "neither");
  if (parameters.logits.defined()) {
    check_floating(bernoulli_name, parameters.logits, where);
    logits_ = parameters.logits;
    probabilities_ = sigmoid(logits_);
  } else {
    check_floating(bernoulli_name, parameters.probabilities, where);
    probabilities_ = parameters.probabilities;
    check_support(bernoulli_name, logical_and(probabilities_ >= 0, probabilities_ <= 1), "a probability, in [0, 1]",
                  where);
    double epsilon = spacing_at_one(probabilities_.dtype());
    Tensor inside = clamp(probabilities_, epsilon, 1 - epsilon);
    logits_ = log(inside) - log1p(-inside);
    is_clamped_ = true;
  }
}

Tensor Bernoulli::variance(Location where) const {
  OpScope caller(where, bernoulli_name);
  return probabilities_ * (1 - probabilities_);
}

Tensor Bernoulli::exact_logits() const {
  if (!is_clamped_) return logits_;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return where(equal(probabilities_, 0), -infinity, where(equal(probabilities_, 1), infinity, logits_));
}

Tensor Bernoulli::sample(const Shape& sample_shape, DrawOptions options, Location where) const {
  OpScope caller(where, bernoulli_name);
  Tensor p = stop_gradient(probabilities_);
  return bernoulli(expand(p, shape_of_samples(sample_shape, batch_shape(), where)), options);
}

Tensor Bernoulli::log_prob(const Arg& x) const {
  OpScope caller(x.location(), bernoulli_name);
  const TensorOptions like{.dtype = logits_.dtype(), .device = logits_.device()};
  const Tensor given = x.is_tensor() ? tensor_of(bernoulli_name, x) : full({}, x, like);
  check_support(bernoulli_name, logical_and(given >= 0, given <= 1), "in [0, 1]", x.location());
  Tensor l = widened(logits_), value = widened(given);
  return rounded_once(weighted(value, logsigmoid(l)) + weighted(1 - value, logsigmoid(-l)),
                      common_dtype(bernoulli_name, x, logits_));
}

Tensor Bernoulli::entropy(Location where) const {
  OpScope caller(where, bernoulli_name);
  Tensor a = inverted_magnitude(logits_);
  return softplus(a) - weighted(sigmoid(a), a);
}

Tensor kl_divergence(const Bernoulli& p, const Bernoulli& q, Location where) {
  OpScope caller(where, "kl_divergence");
  Tensor a = p.exact_logits(), b = q.exact_logits();
  return weighted(sigmoid(a), logsigmoid(a) - logsigmoid(b)) + weighted(sigmoid(-a), logsigmoid(-a) - logsigmoid(-b));
}

}  // namespace reel::distributions
