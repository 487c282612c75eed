#include <reel/optim/minimise.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <reel/derivatives.h>
#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/linear_algebra.h>
#include <reel/ops/matmul.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>
#include <reel/ops/stop_gradient.h>
#include <reel/optim/lbfgs.h>

#include "../core/op_error.h"
#include "scalars_of.h"

namespace reel::optim {

using namespace detail;

namespace {

constexpr const char *minimise_name = "optim::minimise", *least_squares_name = "optim::least_squares";
constexpr double sufficient_decrease = 1e-4;  // c₁ of Nocedal and Wright
constexpr int most_halvings = 60, most_in_vain = 3;
constexpr double least_damping = 1e-20, most_damping = 1e20;

using Function = std::function<Tensor(const Tensor& x)>;

void check_start(const char* name, const Tensor& start, Location where) {
  if (!start.defined()) fail<Error>(name, where, "the start is an undefined tensor");
  if (start.dtype() != DType::f32 && start.dtype() != DType::f64)
    fail<DTypeError>(name, where, "the start is {}; it must be f32 or f64", describe(start));
  if (start.numel() == 0) fail<ShapeError>(name, where, "the start is {}, without elements", describe(start));
}

// A function with its gradient, which counts its calls.
class Objective {
 public:
  Objective(const Function& f, Location where) : f_(f), where_(where) {}

  std::int64_t evaluations() const { return evaluations_; }

  struct At {
    double value;
    Tensor gradient;
    bool is_finite() const { return std::isfinite(value) && std::isfinite(largest(gradient)); }
  };
  At at(const Tensor& x) {
    auto [value, gradient] = vjp([&](const Tensor& x) { return checked(x); }, x, ones({}, like(x)), where_);
    return {value.item(), gradient};
  }
  double value_at(const Tensor& x) { return checked(x).item(); }
  // True after several steps in a row in which neither the function nor its gradient became less than ever before: where
  // the dtype does not resolve the function any more, its gradient may still become smaller.
  bool stands_still(const At& here) {
    double gradient = largest(here.gradient);
    in_vain_ = here.value < least_value_ || gradient < least_gradient_ ? 0 : in_vain_ + 1;
    least_value_ = std::min(least_value_, here.value);
    least_gradient_ = std::min(least_gradient_, gradient);
    return in_vain_ == most_in_vain;
  }
  Tensor hessian_times(const Tensor& x, const Tensor& direction) {
    return hvp([&](const Tensor& x) { return checked(x); }, x, direction, where_).product;
  }

 private:
  static TensorOptions like(const Tensor& x) { return {.dtype = x.dtype(), .device = x.device()}; }
  // A scalar.
  Tensor checked(const Tensor& x) {
    ++evaluations_;
    Tensor value = f_(x);
    if (!value.defined() || value.numel() != 1)
      fail<ShapeError>(minimise_name, where_, "the function returns {}; it must return one element",
                       value.defined() ? describe(value) : "an undefined tensor");
    return reshape(value, {});
  }

  const Function& f_;
  Location where_;
  std::int64_t evaluations_ = 0;
  double least_value_ = HUGE_VAL, least_gradient_ = HUGE_VAL;
  int in_vain_ = 0;
};

void refuse_not_finite(const char* name, Location where) {
  fail<Error>(name, where, "the function or its gradient is not finite at the start");
}

// The direction of Newton's method: d with H d ≈ −g.
Tensor newton_direction(Objective& objective, const Tensor& x, const Tensor& gradient) {
  double norm = std::sqrt(dot(gradient, gradient));
  double tolerance = std::min(0.5, std::sqrt(norm)) * norm;
  Tensor direction = zeros_like(x), residual = gradient, search = -gradient;
  double squares = norm * norm;
  for (std::int64_t i = 0; i < 2 * x.numel() + 10; ++i) {
    Tensor product = objective.hessian_times(x, search);
    double curvature = dot(search, product);
    // If the curvature is negative or rounds to 0: the best direction so far, or steepest descent.
    if (!(curvature > std::numeric_limits<double>::epsilon() * dot(search, search))) return i == 0 ? search : direction;
    double length = squares / curvature;
    direction = direction + search * length;
    residual = residual + product * length;
    double next = dot(residual, residual);
    if (std::sqrt(next) <= tolerance) return direction;
    search = search * (next / squares) - residual;
    squares = next;
  }
  return direction;
}

// The step to where the function has decreased enough; undefined if there is none.
Tensor follow(Objective& objective, const Tensor& x, const Objective::At& here, const Tensor& direction) {
  double slope = dot(here.gradient, direction), length = 1;
  if (!(slope < 0)) return {};
  for (int i = 0; i < most_halvings; ++i, length /= 2) {
    Tensor next = x + direction * length;
    if (objective.value_at(next) <= here.value + sufficient_decrease * length * slope) return next;
  }
  return {};
}

Minimum by_newton(Objective& objective, Tensor x, const MinimiseOptions& options, Location where) {
  Objective::At here = objective.at(x);
  if (!here.is_finite()) refuse_not_finite(minimise_name, where);
  std::int64_t iterations = 0;
  while (largest(here.gradient) > options.gradient_tolerance && iterations < options.max_iterations) {
    Tensor next = follow(objective, x, here, newton_direction(objective, x, here.gradient));
    if (!next.defined()) break;
    Objective::At there = objective.at(next);
    if (!there.is_finite()) break;
    x = next;
    here = there;
    ++iterations;
    if (objective.stands_still(here)) break;
  }
  double gradient = largest(here.gradient);
  return {x, here.value, gradient, iterations, objective.evaluations(), gradient <= options.gradient_tolerance};
}

Minimum by_lbfgs(Objective& objective, const Tensor& start, const MinimiseOptions& options, Location where) {
  Tensor x = copy(start).requires_grad();
  Objective::At here = objective.at(stop_gradient(x));
  if (!here.is_finite()) refuse_not_finite(minimise_name, where);
  LBFGS lbfgs({x}, {.max_iterations = 1, .max_evaluations = 25, .tolerance_gradient = 0, .tolerance_change = 0}, where);
  std::int64_t iterations = 0;
  while (largest(here.gradient) > options.gradient_tolerance && iterations < options.max_iterations) {
    lbfgs.step(
        [&] {
          Objective::At at = objective.at(stop_gradient(x));
          x.set_grad(at.gradient, where);
          return at.value;
        },
        where);
    here = objective.at(stop_gradient(x));
    ++iterations;
    if (objective.stands_still(here)) break;
  }
  double gradient = largest(here.gradient);
  return {copy(stop_gradient(x)),
          here.value,
          gradient,
          iterations,
          objective.evaluations(),
          gradient <= options.gradient_tolerance};
}

// The linearisation of a least-squares problem at a point.
struct Linearised {
  double value;             // ½ Σ r²
  Tensor normal, gradient;  // JᵀJ and Jᵀr
  bool is_finite() const { return std::isfinite(value) && std::isfinite(largest(gradient)); }
};

class Residuals {
 public:
  Residuals(const Function& r, Location where) : r_(r), where_(where) {}

  std::int64_t evaluations() const { return evaluations_; }

  double value_at(const Tensor& x) {
    Tensor r = flat(x);
    return dot(r, r) / 2;
  }
  Linearised at(const Tensor& x) {
    Tensor r = flat(x);
    Tensor j = reshape(jacobian([&](const Tensor& x) { return flat(x); }, x, {}, where_), {r.numel(), x.numel()});
    Tensor transposed = transpose(j, 0, 1);
    return {dot(r, r) / 2, matmul(transposed, j), matmul(transposed, r)};
  }

 private:
  Tensor flat(const Tensor& x) {
    ++evaluations_;
    Tensor r = r_(x);
    if (!r.defined()) fail<ShapeError>(least_squares_name, where_, "the function returns an undefined tensor");
    return reshape(r, {r.numel()});
  }

  const Function& r_;
  Location where_;
  std::int64_t evaluations_ = 0;
};

// λ by the ratio of the decrease to that of the linear model.
class Damping {
 public:
  explicit Damping(double first) : lambda_(first) {}
  double lambda() const { return lambda_; }
  void good(double ratio) {
    lambda_ = std::max(lambda_ * std::max(1.0 / 3, 1 - std::pow(2 * ratio - 1, 3)), least_damping);
    growth_ = 2;
  }
  /// False if a larger λ would make no step.
  bool bad() {
    lambda_ *= growth_;
    growth_ *= 2;
    return lambda_ < most_damping;
  }

 private:
  double lambda_, growth_ = 2;
};

Minimum by_marquardt(Residuals& residuals, Tensor x, const LeastSquaresOptions& options, Location where) {
  Linearised here = residuals.at(x);
  if (!here.is_finite()) refuse_not_finite(least_squares_name, where);
  Damping damping(options.damping);
  std::int64_t iterations = 0;
  auto has_converged = [&] { return largest(here.gradient) <= options.gradient_tolerance; };
  bool is_short = false, goes_on = true;
  while (goes_on && !is_short && !has_converged() && iterations < options.max_iterations) {
    Tensor diagonal_of_normal = diag(here.normal);
    // A parameter that no residual depends on stays where it is.
    Tensor scale = reel::where(diagonal_of_normal > 0.0, diagonal_of_normal, 1.0);
    Tensor step = solve(here.normal + diag(scale * damping.lambda()), -here.gradient);
    double length = std::sqrt(dot(step, step));
    is_short = length <= options.step_tolerance * (std::sqrt(dot(x, x)) + options.step_tolerance);
    Tensor next = x + reshape(step, x.shape());
    double value = residuals.value_at(next);
    double predicted = dot(step, scale * step * damping.lambda() - here.gradient) / 2;
    if (value < here.value) {
      Linearised there = residuals.at(next);
      if (there.is_finite()) {
        damping.good(predicted > 0 ? (here.value - there.value) / predicted : 0);
        x = next;
        here = there;
        ++iterations;
        continue;
      }
    }
    goes_on = damping.bad();
  }
  return {x, here.value, largest(here.gradient), iterations, residuals.evaluations(), has_converged() || is_short};
}

}  // namespace

Minimum minimise(const Function& f, const Tensor& start, const MinimiseOptions& options, Location where) {
  check_start(minimise_name, start, where);
  if (options.max_iterations < 0 || !(options.gradient_tolerance >= 0))
    fail<Error>(minimise_name, where, ".max_iterations is {} and .gradient_tolerance {:g}; both must be at least 0",
                options.max_iterations, options.gradient_tolerance);
  CallerScope caller(where);
  Objective objective(f, where);
  Tensor x = stop_gradient(start);
  return options.method == MinimiseMethod::lbfgs ? by_lbfgs(objective, x, options, where)
                                                 : by_newton(objective, x, options, where);
}

Minimum least_squares(const Function& residuals, const Tensor& start, const LeastSquaresOptions& options,
                      Location where) {
  check_start(least_squares_name, start, where);
  if (options.max_iterations < 0 || !(options.gradient_tolerance >= 0) || !(options.step_tolerance >= 0) ||
      !(options.damping > 0))
    fail<Error>(least_squares_name, where,
                ".max_iterations is {}, .gradient_tolerance {:g}, .step_tolerance {:g}, .damping {:g}; the first three "
                "must be at least 0, the last one above 0",
                options.max_iterations, options.gradient_tolerance, options.step_tolerance, options.damping);
  CallerScope caller(where);
  Residuals linearised(residuals, where);
  return by_marquardt(linearised, stop_gradient(start), options, where);
}

}  // namespace reel::optim
