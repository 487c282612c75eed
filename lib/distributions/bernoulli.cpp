#include <reel/distributions/bernoulli.h>

#include <cmath>

#include <reel/ops.h>
#include <reel/ops/stop_gradient.h>

#include "../core/op_error.h"
#include "distribution.h"

namespace reel::distributions {

using namespace detail;

namespace {

constexpr const char* bernoulli_name = "Bernoulli";

// The distance from 1 to the next number of a dtype.
double spacing_at_one(DType dtype) {
  int bits = dtype == DType::f64 ? 52 : dtype == DType::f32 ? 23 : dtype == DType::f16 ? 10 : 7;
  return std::ldexp(1.0, -bits);
}

// −|x|, with the derivative −1 in place of 0 at 0: even functions of it keep their second derivatives there.
Tensor inverted_magnitude(const Tensor& x) { return where(x < 0, x, -x); }

}  // namespace

Bernoulli::Bernoulli(const BernoulliParameters& parameters, Location where) {
  CallerScope caller(where);
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
    double epsilon = spacing_at_one(probabilities_.dtype());
    Tensor inside = clamp(probabilities_, epsilon, 1 - epsilon);
    logits_ = log(inside) - log1p(-inside);
  }
}

Tensor Bernoulli::variance(Location where) const {
  CallerScope caller(where);
  return probabilities_ * (1 - probabilities_);
}

Tensor Bernoulli::sample(const Shape& sample_shape, DrawOptions options, Location where) const {
  CallerScope caller(where);
  Tensor p = stop_gradient(probabilities_);
  return bernoulli(expand(p, shape_of_samples(sample_shape, batch_shape(), where)), options);
}

Tensor Bernoulli::log_prob(const Arg& x) const {
  CallerScope caller(x.location());
  // x l − log(1 + e^l), with the large terms apart, so that they cancel before the small one is added.
  return (x * logits_ - where(logits_ < 0, 0, logits_)) - softplus(inverted_magnitude(logits_));
}

Tensor Bernoulli::entropy(Location where) const {
  CallerScope caller(where);
  Tensor a = inverted_magnitude(logits_);
  return softplus(a) - a * sigmoid(a);
}

Tensor kl_divergence(const Bernoulli& p, const Bernoulli& q, Location where) {
  CallerScope caller(where);
  broadcast_of("kl_divergence", p.batch_shape(), q.batch_shape(), where);
  const Tensor &a = p.logits(), &b = q.logits();
  return sigmoid(a) * (softplus(-b) - softplus(-a)) + sigmoid(-a) * (softplus(b) - softplus(a));
}

}  // namespace reel::distributions
