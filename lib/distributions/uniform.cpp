#include <reel/distributions/uniform.h>

#include <limits>

#include <reel/no_record.h>
#include <reel/ops.h>
#include <reel/ops/stop_gradient.h>

#include "../core/op_error.h"
#include "../ops/if_needed.h"
#include "distribution.h"

namespace reel::distributions {

using namespace detail;

namespace {

constexpr const char* uniform_name = "Uniform";

// In f32 for halves, whose range may not hold it.
Tensor width_of(const Uniform& d) { return widened(d.high()) - widened(d.low()); }

}  // namespace

Uniform::Uniform(const Arg& low, const Arg& high) {
  OpScope caller(low.location(), uniform_name);
  auto [first, second] = parameters_of(uniform_name, "low", low, "high", high);
  NoRecord pause;
  if (!value_to_check<bool>(all(first < second)))
    fail<Error>(uniform_name, low.location(), "low must be less than high everywhere");
  low_ = first;
  high_ = second;
}

Tensor Uniform::mean(Location where) const {
  OpScope caller(where, uniform_name);
  return (low_ + high_) / 2;
}

Tensor Uniform::variance(Location where) const {
  OpScope caller(where, uniform_name);
  return square(high_ - low_) / 12;
}

Tensor Uniform::sample(const Shape& sample_shape, DrawOptions options, Location where) const {
  return stop_gradient(rsample(sample_shape, options, where));
}

Tensor Uniform::rsample(const Shape& sample_shape, DrawOptions options, Location where) const {
  OpScope caller(where, uniform_name);
  Tensor u = rand(shape_of_samples(sample_shape, batch_shape(), where),
                  {.dtype = low_.dtype(), .device = low_.device(), .generator = options.generator});
  Tensor x = to_if_needed(widened(low_) + width_of(*this) * widened(u), low_.dtype());
  // A sum may be rounded up to `high`, which is no sample: `low`, to which sums are rounded from one side only, takes
  // its share.
  return reel::where(x < high_, x, low_);
}

Tensor Uniform::log_prob(const Arg& x) const {
  OpScope caller(x.location(), uniform_name);
  check_support(uniform_name, logical_and(x >= low_, x <= high_), "in [low, high]", x.location());
  return reel::where(x < high_, -entropy(x.location()), -std::numeric_limits<double>::infinity());
}

Tensor Uniform::entropy(Location where) const {
  OpScope caller(where, uniform_name);
  return rounded_once(log(width_of(*this)), low_.dtype());
}

Tensor kl_divergence(const Uniform& p, const Uniform& q, Location where) {
  OpScope caller(where, "kl_divergence");
  return reel::where(logical_and(q.low() <= p.low(), q.high() >= p.high()),
                     rounded_once(log(width_of(q) / width_of(p)), q.low().dtype()),
                     std::numeric_limits<double>::infinity());
}

}  // namespace reel::distributions
