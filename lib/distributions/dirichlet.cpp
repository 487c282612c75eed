#include <reel/distributions/dirichlet.h>

#include <reel/ops.h>
#include <reel/ops/stop_gradient.h>

#include "../ops/if_needed.h"
#include "../ops/operand.h"
#include "distribution.h"
#include "standard_gamma.h"

namespace reel::distributions {

using namespace detail;

namespace {

constexpr const char* dirichlet_name = "Dirichlet";

}  // namespace

Dirichlet::Dirichlet(const Arg& concentration) {
  const Tensor& given = tensor_of(dirichlet_name, concentration);
  OpScope caller(concentration.location(), dirichlet_name);
  check_floating(dirichlet_name, given, concentration.location());
  if (given.rank() == 0 || given.size(-1) == 0)
    fail<ShapeError>(dirichlet_name, concentration.location(), "concentrations {} have no classes along a last axis",
                     describe(given));
  check_positive(dirichlet_name, "concentration", given, concentration.location());
  concentration_ = given;
}

Tensor Dirichlet::mean(Location where) const {
  OpScope caller(where, dirichlet_name);
  return concentration_ / sum(concentration_, -1, {.keepdims = true});
}

Tensor Dirichlet::variance(Location where) const {
  OpScope caller(where, dirichlet_name);
  Tensor total = sum(concentration_, -1, {.keepdims = true}), m = concentration_ / total;
  return m * (1 - m) / (total + 1);
}

Shape Dirichlet::batch_shape() const { return without_last(concentration_.shape()); }

Shape Dirichlet::event_shape() const { return {concentration_.size(-1)}; }

Tensor Dirichlet::sample(const Shape& sample_shape, DrawOptions options, Location where) const {
  return stop_gradient(rsample(sample_shape, options, where));
}

Tensor Dirichlet::rsample(const Shape& sample_shape, DrawOptions options, Location where) const {
  OpScope caller(where, dirichlet_name);
  Tensor alpha = expand(concentration_, shape_of_samples(sample_shape, concentration_.shape(), where));
  return inside_unit_interval(softmax(log_standard_gamma(alpha, options.generator)), concentration_.dtype());
}

Tensor Dirichlet::log_prob(const Arg& x) const {
  OpScope caller(x.location(), dirichlet_name);
  const Tensor& given = tensor_of(dirichlet_name, x);
  if (given.rank() == 0 || given.size(-1) != concentration_.size(-1))
    fail<ShapeError>(dirichlet_name, x.location(), "values {} are not probabilities of {} classes along the last axis",
                     describe(given), concentration_.size(-1));
  // Each element of a sample may have been raised to the smallest normal number.
  double tolerance = (size_of(given.dtype()) == 2 ? 1e-2 : 1e-6) +
                     static_cast<double>(given.size(-1)) * smallest_normal(given.dtype());
  check_support(dirichlet_name, given >= 0, "at least 0", x.location());
  check_support(dirichlet_name, abs(sum(given, -1) - 1) <= tolerance, "a vector of probabilities with the sum 1",
                x.location());
  Tensor a = widened(concentration_);
  return rounded_once(sum(xlogy(a - 1, widened(given)), -1) + lgamma(sum(a, -1)) - sum(lgamma(a), -1),
                      common_dtype(dirichlet_name, x, concentration_));
}

Tensor Dirichlet::entropy(Location where) const {
  OpScope caller(where, dirichlet_name);
  Tensor total = sum(concentration_, -1);
  auto classes = static_cast<double>(concentration_.size(-1));
  return sum(lgamma(concentration_) - (concentration_ - 1) * digamma(concentration_), -1) - lgamma(total) +
         (total - classes) * digamma(total);
}

Tensor kl_divergence(const Dirichlet& p, const Dirichlet& q, Location where) {
  OpScope caller(where, "kl_divergence");
  if (p.event_shape() != q.event_shape())
    fail<ShapeError>("kl_divergence", where, "{} classes and {} are not equally many", p.event_shape()[0],
                     q.event_shape()[0]);
  const Tensor &a = p.concentration(), &b = q.concentration();
  Tensor total = sum(a, -1, {.keepdims = true});
  return lgamma(sum(a, -1)) - lgamma(sum(b, -1)) +
         sum(lgamma(b) - lgamma(a) + (a - b) * (digamma(a) - digamma(total)), -1);
}

}  // namespace reel::distributions
