#pragma once

#include <cstdint>
#include <functional>

#include <reel/location.h>
#include <reel/tensor.h>

namespace reel::optim {

/// How `minimise` finds a minimum.
enum class MinimiseMethod : std::uint8_t {
  lbfgs,      ///< `LBFGS` with line search: needs gradients
  newton_cg,  ///< Newton's method, whose systems conjugate gradients solve: needs products with the Hessian, `hvp`
};

/// Options of `minimise`.
struct MinimiseOptions {
  MinimiseMethod method = MinimiseMethod::lbfgs;  ///< default `lbfgs`
  std::int64_t max_iterations = 200;              ///< the most steps, at least 0. Default 200
  /// It has converged where no element of the gradient is larger; at least 0. Default 1e-5.
  double gradient_tolerance = 1e-5;
};

/// Options of `least_squares`.
struct LeastSquaresOptions {
  std::int64_t max_iterations = 100;  ///< the most Jacobians, at least 0. Default 100
  /// It has converged where no element of the gradient Jᵀr is larger; at least 0. Default 1e-8.
  double gradient_tolerance = 1e-8;
  /// It has converged where a step is shorter than this part of |x|; at least 0. Default 1e-10.
  double step_tolerance = 1e-10;
  /// The first damping λ, relative to the diagonal of JᵀJ; above 0. Default 1e-3.
  double damping = 1e-3;
};

/// Where a search for a minimum has ended.
struct Minimum {
  Tensor x;                      ///< the place; of the shape and dtype of the start, without a gradient
  double value = 0;              ///< f(x), or ½ Σ r(x)²
  double largest_gradient = 0;   ///< the largest magnitude of an element of the gradient there
  std::int64_t iterations = 0;   ///< the steps that were made
  std::int64_t evaluations = 0;  ///< the calls of the function
  bool has_converged = false;    ///< whether a tolerance was reached; else the iterations or what f32 resolves ended it
};

/// Minimises a function of one tensor without noise, from a start: for models that are no nets.
///
///     Tensor w = optim::minimise([&](const Tensor& w) { return mean(square(matmul(x, w) - y)); }, zeros({3})).x;
///
/// `f`: returns a tensor of one element. With `newton_cg`, H d = −g is solved by conjugate gradients until the residual
/// is min(½, √|g|) |g|, or a direction of negative curvature is met, which is followed then; the step is halved until
/// f(x + t d) ≤ f(x) + 10⁻⁴ t g·d. Values that are not finite are too large. To be called without an open tape, which
/// would record all of the search.
/// Throws: DTypeError unless the start is f32 or f64; ShapeError if f does not return one element; Error for options out
/// of range, and where f or its gradient is not finite at the start.
/// Source: Nocedal and Wright, Numerical optimization (2006), algorithms 7.5 and 7.1.
Minimum minimise(const std::function<Tensor(const Tensor& x)>& f, const Tensor& start,
                 const MinimiseOptions& options = {}, Location where = Location::here());

/// Minimises half the sum of squared residuals, ½ Σ r(x)², by the method of Levenberg and Marquardt:
///
///     (JᵀJ + λ diag(JᵀJ)) δ = −Jᵀr,  x = x + δ where that makes the sum smaller
///
/// with J the Jacobian of r, and λ made smaller after a good step and larger after a bad one. `residuals`: returns a
/// tensor of any shape.
/// Throws: as `minimise`.
/// Source: Marquardt (1963); the damping as in Nielsen (1999), Damping parameter in Marquardt's method.
Minimum least_squares(const std::function<Tensor(const Tensor& x)>& residuals, const Tensor& start,
                      const LeastSquaresOptions& options = {}, Location where = Location::here());

}  // namespace reel::optim
