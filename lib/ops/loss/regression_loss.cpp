#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/shape.h>
#include <reel/ops/stop_gradient.h>

#include <cmath>
#include <numbers>
#include <span>

#include "../../dispatch/autocast.h"
#include "../if_needed.h"
#include "loss_operands.h"

namespace reel {

using namespace detail;

// mse_loss = (x − t)²

Tensor mse_loss(const Arg& input, const Arg& target, LossOptions options) {
  Compared given("mse_loss", input, target);
  return reduced(element_losses(ElementLoss::squared, given), options.reduction, given.dtype);
}

// l1_loss = |x − t|

Tensor l1_loss(const Arg& input, const Arg& target, LossOptions options) {
  Compared given("l1_loss", input, target);
  return reduced(element_losses(ElementLoss::absolute, given), options.reduction, given.dtype);
}

// huber_loss = c (e − c / 2), c = e clamped to ±δ, e = x − t

Tensor huber_loss(const Arg& input, const Arg& target, HuberOptions options) {
  const char* name = "huber_loss";
  Compared given(name, input, target);
  if (!(options.delta > 0)) fail<Error>(name, given.where, "delta must be positive, not {}", options.delta);
  return reduced(element_losses(ElementLoss::huber, given, options.delta), options.reduction, given.dtype);
}

// smooth_l1_loss = huber_loss(δ = β) / β

Tensor smooth_l1_loss(const Arg& input, const Arg& target, SmoothL1Options options) {
  const char* name = "smooth_l1_loss";
  Compared given(name, input, target);
  if (!(options.beta >= 0)) fail<Error>(name, given.where, "beta cannot be {}: it is at least 0", options.beta);
  ElementLoss kind = options.beta == 0 ? ElementLoss::absolute : ElementLoss::smooth_l1;
  return reduced(element_losses(kind, given, options.beta), options.reduction, given.dtype);
}

// poisson_nll_loss = e^x − t x, or x − t log(x + ε)

Tensor poisson_nll_loss(const Arg& input, const Arg& target, PoissonOptions options) {
  Compared given("poisson_nll_loss", input, target);
  const Tensor x = widened(given.input), t = widened(given.target);
  Tensor losses = options.log_input ? exp(x) - t * x : x - t * log(x + options.epsilon);
  if (options.full) {
    // The derivative of the branch that is not selected must be finite, too.
    Tensor large = t > 1, safe = where(large, t, 1.0);
    Tensor stirling = safe * log(safe) - safe + log(safe * (2 * std::numbers::pi)) * 0.5;
    losses = losses + where(large, stirling, 0.0);
  }
  return reduced(losses, options.reduction, given.dtype);
}

// gaussian_nll_loss = (log v + (x − t)² / v) / 2

Tensor gaussian_nll_loss(const Arg& input, const Arg& target, const Arg& given_variance, GaussianOptions options) {
  const char* name = "gaussian_nll_loss";
  const AutocastArg variance_arg(Precision::full, given_variance);
  const Tensor& variance = tensor_of(name, variance_arg);
  Compared given(name, input, target);
  const Tensor& x = given.input;
  check_like(name, *AutocastArg(Precision::full, input)->tensor(), variance, "variance", given.where);
  if (!(options.epsilon > 0)) fail<Error>(name, given.where, "epsilon must be above 0, not {}", options.epsilon);
  Shape whole = x.shape(), one = whole, without = whole;
  if (whole.rank() > 0) {
    one[whole.rank() - 1] = 1;
    without = Shape(std::span<const std::int64_t>(whole.begin(), static_cast<std::size_t>(whole.rank() - 1)));
  }
  if (variance.shape() != whole && variance.shape() != one && variance.shape() != without)
    fail<ShapeError>(name, given.where,
                     "the variance {} has neither the shape of the input {} nor one number for all of its last axis",
                     to_string(variance.shape()), to_string(whole));
  Tensor v = widened(variance);
  if (v.shape() != whole && v.shape() == without) v = unsqueeze(v, -1);
  // Unlike maximum, it passes the gradient on below epsilon, so that small variances can grow.
  v = where(v < options.epsilon, v - stop_gradient(v) + options.epsilon, v);
  Tensor losses = (log(v) + element_losses(ElementLoss::squared, given) / v) * 0.5;
  if (options.full) losses = losses + 0.5 * std::log(2 * std::numbers::pi);
  return reduced(losses, options.reduction, given.dtype);
}

}  // namespace reel
