#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <reel/tensor.h>

/// \file
/// Initial value problems dy/dt = f(t, y), y(t_0) = y_0: f is any C++ that computes dy/dt, of the shape of y, from a time
/// and a state, such as a network:
///
///     Tensor y = odeint([&](double, const Tensor& y) { return field(y); }, y0, times);   // (T, …)
///
/// `odeint` is differentiated through its steps, which the tape keeps. `odeint_adjoint` keeps the states at the given
/// times only, and computes gradients by a second equation that runs backwards in time: memory does not grow with the
/// number of steps, and gradients are those of the equation instead of the steps, which differ by about the tolerance.

namespace reel {

/// dy/dt = f(t, y): the state y, a tensor of any shape → its derivative, of that shape and dtype.
using OdeFunction = std::function<Tensor(double t, const Tensor& y)>;
/// dy/dt = f(t, y, w), with the tensors w by which a solution is to be differentiated.
using OdeFunctionOf = std::function<Tensor(double t, const Tensor& y, std::span<const Tensor> w)>;

/// How an initial value problem is solved.
enum class OdeMethod : std::uint8_t {
  runge_kutta4,    ///< the classical method of order 4, with steps of one size
  dormand_prince,  ///< of order 5, with steps that are as large as the tolerances allow
};

/// Options of `odeint` and `odeint_adjoint`.
struct OdeOptions {
  /// Default OdeMethod::dormand_prince.
  OdeMethod method = OdeMethod::dormand_prince;
  /// The largest step of runge_kutta4, in units of time; 0 (default): one step from each given time to the next.
  double step = 0;
  /// A step's error in dormand_prince, estimated for each element, is at most absolute_tolerance + relative_tolerance |y| in
  /// the root mean square. Default 1e-5, for f32; f64 can take 1e-9.
  double relative_tolerance = 1e-5;
  /// Default 1e-7, in units of the state.
  double absolute_tolerance = 1e-7;
  /// The most steps of dormand_prince from each given time to the next, rejected ones too. Default 10000.
  std::int64_t most_steps = 10000;
};

/// One step of the classical Runge-Kutta method of order 4: the state y at t → the state at t + h. k_1 = f(t, y), k_2 =
/// f(t + h/2, y + h/2 k_1), k_3 = f(t + h/2, y + h/2 k_2), k_4 = f(t + h, y + h k_3); y + h/6 (k_1 + 2 k_2 + 2 k_3 + k_4).
/// Throws: ShapeError, DTypeError unless f returns a tensor of the shape and dtype of y; what f throws.
Tensor rk4_step(const OdeFunction& f, double t, const Arg& y, double h);

/// Solves dy/dt = f(t, y) from y(times[0]) = y0, of any shape, f32 or f64 → the states at all T times, (T, …), of which
/// the first is y0. A tape records every step, as if its size did not depend on y. times: increasing, or decreasing.
/// Throws: Error for times that are not in order, tolerances that are not positive, a state that is not finite, and where
/// most_steps do not suffice; ShapeError, DTypeError unless f returns a tensor of the shape and dtype of y; what f throws.
/// Source: Hairer, Nørsett and Wanner, Solving ordinary differential equations I (1993), II.4 and II.5; the function's
/// form is that of torchdiffeq.
Tensor odeint(const OdeFunction& f, const Arg& y0, std::span<const double> times, const OdeOptions& options = {});

/// Solves dy/dt = f(t, y, w) from y(times[0]) = y0, of any shape, f32 or f64 → the states at all T times, (T, …), of which
/// the first is y0. Gradients by y0 and by the tensors w are those of the adjoint equation, solved backwards in time from
/// the saved states:
///
///     da/dt = −aᵀ ∂f/∂y,   dL/dw = ∫ aᵀ ∂f/∂w dt,   where a(t) = dL/dy(t)
///
/// so that the tape keeps no step. A copy of f is kept until the gradient has been computed; what f captures by reference
/// has to live as long. The weights of a module are passed on by functional_call:
///
///     auto f = [&](double, const Tensor& y, std::span<const Tensor> w) {
///       for (std::size_t i = 0; i < w.size(); ++i) weights[i].tensor = w[i];
///       return nn::functional_call(field, weights, y);
///     };
///     Tensor y = odeint_adjoint(f, y0, times, field.parameters());
///
/// Throws: Error for times that are not in order, tolerances that are not positive, a state that is not finite, and where
/// most_steps do not suffice; ShapeError, DTypeError unless f returns a tensor of the shape and dtype of y; TapeError if f
/// uses a tracked tensor that is not in w, whose gradient would be missing; what f throws.
/// Source: Chen et al., Neural ordinary differential equations (2018); steps back are chosen by the errors of y and a alone,
/// as in Kidger et al., "Hey, that's not an ODE" (2021).
Tensor odeint_adjoint(const OdeFunctionOf& f, const Arg& y0, std::span<const double> times,
                      const std::vector<Tensor>& w, const OdeOptions& options = {});

}  // namespace reel
