#include <reel/distributions/poisson.h>

#include <cmath>

#include <reel/no_record.h>
#include <reel/ops.h>

#include "../ops/if_needed.h"
#include "distribution.h"
#include "rejection.h"

namespace reel::distributions {

using namespace detail;

namespace {

constexpr const char* poisson_name = "Poisson";

// From this rate on PTRS is used, which is not valid below.
constexpr double smallest_of_ptrs = 10;

// The inverse of the distribution function at a uniform u: the number of k with F(k) ≤ u. Rates are below 10: (n), f64.
Tensor poisson_by_inversion(const Tensor& rate, const RandomOptions& drawn) {
  if (rate.numel() == 0) return rate;
  double largest = max(rate).item<double>(), bound = std::exp(-largest);
  Tensor u = rand(rate.shape(), drawn), probability = exp(-rate), distribution = probability;
  Tensor count = to(distribution <= u, DType::f64);
  // Runs until every k above the mode has a probability that u, of 53 bits, cannot tell from 0.
  for (int k = 1; k <= largest || bound > 0x1p-54; ++k) {
    bound *= largest / k;
    probability = probability * rate / k;
    distribution = distribution + probability;
    count = count + to(distribution <= u, DType::f64);
  }
  return count;
}

// Rates are at least 10: (n), f64.
Tensor poisson_by_ptrs(const Tensor& rate, const RandomOptions& drawn) {
  return rejection_sample([&](const Tensor& index) {
    Tensor lambda = selected(rate, index), b = 0.931 + 2.53 * sqrt(lambda), a = 0.02483 * b - 0.059;
    Tensor u = rand(lambda.shape(), drawn) - 0.5, v = 1 - rand(lambda.shape(), drawn), us = 0.5 - abs(u);
    Tensor k = floor((2 * a / us + b) * u + lambda + 0.43);
    Tensor quick = logical_and(us >= 0.07, v <= 0.9277 - 3.6224 / (b - 2));
    Tensor outside = logical_or(k < 0, logical_and(us<0.013, v> us));
    Tensor ratio = log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / square(us) + b));
    Tensor above = ratio > k * log(lambda) - lambda - lgamma(k + 1);
    return Proposal{k, logical_and(logical_not(quick), logical_or(outside, above))};
  });
}

// From this rate on the series of the entropy is as precise as the sum, whose terms are 0 behind these.
constexpr double smallest_of_series = 50;
constexpr std::int64_t terms_of_sum = 150;

// λ − λ log λ + Σ_k p_k log k! of rates (n, 1) above 0 and below 50, f64: (n).
Tensor entropy_by_sum(const Tensor& rate) {
  Tensor k = arange(terms_of_sum, {.dtype = DType::f64, .device = rate.device()}), log_factorial = lgamma(k + 1);
  Tensor log_rate = log(rate), probability = exp(k * log_rate - rate - log_factorial);
  return squeeze(rate - rate * log_rate, 1) + sum(probability * log_factorial, 1);
}

// The entropy of rates of at least 50, f64.
Tensor entropy_by_series(const Tensor& rate) {
  Tensor r = reciprocal(rate);
  Tensor rest = 1. / 12 + r * (1. / 24 + r * (19. / 360 + r * (9. / 80 + r * (863. / 2520 + r * (1375. / 1008)))));
  return 0.5 + half_log_2pi + 0.5 * log(rate) - r * rest;
}

}  // namespace

Poisson::Poisson(const Arg& rate) {
  OpScope caller(rate.location(), poisson_name);
  rate_ = rate.is_tensor() ? tensor_of(poisson_name, rate) : full({}, rate.number());
  check_floating(poisson_name, rate_, rate.location());
  if (rate_.numel() == 0) return;
  NoRecord pause;
  double least = value_to_check<double>(min(rate_));
  if (!(least >= 0)) fail<Error>(poisson_name, rate.location(), "the rate must be at least 0, not {}", least);
}

Tensor Poisson::sample(const Shape& sample_shape, DrawOptions options, Location where) const {
  OpScope caller(where, poisson_name);
  NoRecord pause;
  Shape shape = shape_of_samples(sample_shape, batch_shape(), where);
  const RandomOptions drawn{.dtype = DType::f64, .device = rate_.device(), .generator = options.generator};
  Tensor rate = reshape(expand(to_if_needed(rate_, DType::f64), shape), {-1});
  if (rate.numel() == 0) return zeros(shape, {.dtype = rate_.dtype(), .device = rate_.device()});
  Tensor large = reshape(nonzero(rate >= smallest_of_ptrs), {-1});
  // Where the other algorithm is used, the rate is 0, for which inversion needs no steps.
  Tensor count = poisson_by_inversion(reel::where(rate < smallest_of_ptrs, rate, 0), drawn);
  if (large.numel() > 0) count = index_put(count, {large}, poisson_by_ptrs(index_select(rate, 0, large), drawn));
  return nan_to_num(to_if_needed(reshape(count, shape), rate_.dtype()));
}

Tensor Poisson::log_prob(const Arg& x) const {
  OpScope caller(x.location(), poisson_name);
  Tensor given = to_if_needed(tensor_of(poisson_name, x), rate_.dtype());
  check_support(poisson_name, logical_and(given >= 0, equal(floor(given), given)), "a whole number from 0 on",
                x.location());
  Tensor count = widened(given), rate = widened(rate_);
  return rounded_once(xlogy(count, rate) - rate - lgamma(count + 1), rate_.dtype());
}

Tensor Poisson::entropy(Location where) const {
  OpScope caller(where, poisson_name);
  Tensor rate = reshape(to_if_needed(rate_, DType::f64), {-1}), small = rate < smallest_of_series,
         none = equal(rate, 0);
  // Each formula is given rates at which it and its gradient are finite where it is not taken.
  Tensor sum = entropy_by_sum(unsqueeze(reel::where(logical_and(small, logical_not(none)), rate, 1), 1));
  Tensor series = entropy_by_series(reel::where(small, smallest_of_series, rate));
  Tensor found = reel::where(none, 0, reel::where(small, sum, series));
  return to_if_needed(reshape(found, batch_shape()), rate_.dtype());
}

Tensor kl_divergence(const Poisson& p, const Poisson& q, Location where) {
  OpScope caller(where, "kl_divergence");
  return xlogy(p.rate(), p.rate()) - xlogy(p.rate(), q.rate()) - p.rate() + q.rate();
}

}  // namespace reel::distributions
