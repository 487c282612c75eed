#include <reel/ode.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include <reel/derivatives.h>
#include <reel/detail/custom_form.h>
#include <reel/no_record.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>

#include "../core/context.h"
#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../ops/if_needed.h"
#include "../record/tape_list.h"

namespace reel {

using namespace detail;

namespace {

// The tensors of a state: y, or in an adjoint equation y, a and the integrals of the weights' gradients.
using State = std::vector<Tensor>;

struct Term {
  double factor;
  const State& slopes;
};

// y + Σ factor slopes
State plus(const State& y, std::initializer_list<Term> terms) {
  State sum = y;
  for (const Term& term : terms)
    if (term.factor != 0)
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] + term.factor * term.slopes[i];
  return sum;
}

// Integrates from time to time.
class Solver {
 public:
  using Slopes = std::function<State(double t, const State& y)>;

  // The errors of the first `controlled` tensors of the state choose the steps.
  Solver(const char* op, Slopes slopes, const OdeOptions& options, std::size_t controlled, Location where)
      : op_(op), slopes_(std::move(slopes)), options_(options), controlled_(controlled), where_(where) {}

  // The state at `end`, from that at t, which is the state returned last unless `restart` has been called since.
  State advance(const State& y, double t, double end) {
    State next = options_.method == OdeMethod::runge_kutta4 ? in_equal_steps(y, t, end) : in_chosen_steps(y, t, end);
    NoRecord pause;
    for (std::size_t i = 0; i < controlled_; ++i)
      if (!value_to_check<bool>(all(isfinite(next[i]))))
        fail<Error>(op_, where_,
                    "the state at t = {} is not finite; f has no bounded solution there, or a step is too large for it",
                    end);
    return next;
  }

  // To be called where the state is changed between two calls of `advance`.
  void restart() { last_slopes_.clear(); }

  State classical_step(const State& y, double t, double h) const {
    State k1 = slopes_(t, y), k2 = slopes_(t + h / 2, plus(y, {{h / 2, k1}}));
    State k3 = slopes_(t + h / 2, plus(y, {{h / 2, k2}})), k4 = slopes_(t + h, plus(y, {{h, k3}}));
    return plus(y, {{h / 6, k1}, {h / 3, k2}, {h / 3, k3}, {h / 6, k4}});
  }

 private:
  State in_equal_steps(State y, double t, double end) const {
    double steps = options_.step > 0 ? std::max(1.0, std::ceil(std::abs(end - t) / options_.step - 1e-9)) : 1;
    double h = (end - t) / steps;
    for (double i = 0; i < steps; ++i) y = classical_step(y, t + i * h, h);
    return y;
  }

  State in_chosen_steps(State y, double t, double end) {
    double direction = end > t ? 1 : -1;
    State k1 = last_slopes_.empty() ? slopes_(t, y) : std::exchange(last_slopes_, {});
    if (size_ == 0) size_ = first_size(y, k1, t, direction);
    for (std::int64_t step = 0; step < options_.most_steps; ++step) {
      bool reaches_end = size_ >= std::abs(end - t) * (1 - 1e-12);
      double h = reaches_end ? end - t : direction * size_;
      if (std::abs(h) < 16 * std::numeric_limits<double>::epsilon() * std::abs(t))
        fail<Error>(op_, where_,
                    "the step at t = {} has become too small to change t; f is not smooth there, or not finite", t);
      auto [next, k7, error] = dormand_prince_step(y, k1, t, reaches_end ? end : t + h);
      // A step that was cut to meet the time says little of the next one's size.
      double proposed = std::abs(h) * factor_of(error);
      if (!(error <= 1)) {
        size_ = proposed;
        continue;
      }
      size_ = reaches_end ? std::max(size_, proposed) : proposed;
      y = std::move(next);
      if (reaches_end) {
        last_slopes_ = std::move(k7);
        return y;
      }
      k1 = std::move(k7);
      t += h;
    }
    fail<Error>(
        op_, where_,
        "{} steps have come from the time before {} to t = {} only; loosen the tolerances or raise .most_steps, "
        "unless f is stiff, which needs another method",
        options_.most_steps, end, t);
  }

  // By how much a step of this error may be larger, or has to be smaller.
  static double factor_of(double error) {
    if (!std::isfinite(error)) return 0.2;
    return error == 0 ? 10 : std::clamp(0.9 * std::pow(error, -0.2), 0.2, 10.0);
  }

  struct Step {
    State next, slopes;
    double error;
  };
  // The last two stages are at `end` exactly, so that k7 is the first stage of the next step also where f depends on t
  // by a jump at a given time.
  Step dormand_prince_step(const State& y, const State& k1, double t, double end) const {
    double h = end - t;
    auto at = [&](double c, std::initializer_list<Term> terms) { return slopes_(t + c * h, plus(y, terms)); };
    State k2 = at(1. / 5, {{h / 5, k1}});
    State k3 = at(3. / 10, {{h * 3 / 40, k1}, {h * 9 / 40, k2}});
    State k4 = at(4. / 5, {{h * 44 / 45, k1}, {-h * 56 / 15, k2}, {h * 32 / 9, k3}});
    State k5 =
        at(8. / 9, {{h * 19372 / 6561, k1}, {-h * 25360 / 2187, k2}, {h * 64448 / 6561, k3}, {-h * 212 / 729, k4}});
    State k6 = slopes_(end, plus(y, {{h * 9017 / 3168, k1},
                                     {-h * 355 / 33, k2},
                                     {h * 46732 / 5247, k3},
                                     {h * 49 / 176, k4},
                                     {-h * 5103 / 18656, k5}}));
    State next = plus(
        y, {{h * 35 / 384, k1}, {h * 500 / 1113, k3}, {h * 125 / 192, k4}, {-h * 2187 / 6784, k5}, {h * 11 / 84, k6}});
    State k7 = slopes_(end, next), error;
    NoRecord pause;
    for (std::size_t i = 0; i < controlled_; ++i)
      error.push_back(h * (71. / 57600 * k1[i] - 71. / 16695 * k3[i] + 71. / 1920 * k4[i] - 17253. / 339200 * k5[i] +
                           22. / 525 * k6[i] - 1. / 40 * k7[i]));
    double norm = scaled_norm(error, y, next);
    return {std::move(next), std::move(k7), norm};
  }

  // The root mean square of x in units of the tolerance of a state between y and z.
  double scaled_norm(const State& x, const State& y, const State& z) const {
    NoRecord pause;
    Tensor sum;
    double count = 0;
    for (std::size_t i = 0; i < controlled_; ++i) {
      Tensor scale = options_.absolute_tolerance + options_.relative_tolerance * maximum(abs(y[i]), abs(z[i]));
      Tensor part = reel::sum(square(x[i] / scale));
      sum = sum.defined() ? sum + part : part;
      count += static_cast<double>(x[i].numel());
    }
    return count == 0 ? 0 : std::sqrt(sum.item() / count);
  }

  double first_size(const State& y, const State& k1, double t, double direction) const {
    double d0 = scaled_norm(y, y, y), d1 = scaled_norm(k1, y, y);
    double tried = d0 < 1e-5 || d1 < 1e-5 ? 1e-6 : 0.01 * d0 / d1;
    State k2 = slopes_(t + direction * tried, plus(y, {{direction * tried, k1}}));
    double d2 = scaled_norm(plus(k2, {{-1, k1}}), y, y) / tried, larger = std::max(d1, d2);
    double size = larger <= 1e-15 ? std::max(1e-6, tried * 1e-3) : std::pow(0.01 / larger, 0.2);
    size = std::min(100 * tried, size);
    return std::isfinite(size) && size > 0 ? size : tried;
  }

  const char* op_;
  Slopes slopes_;
  const OdeOptions& options_;
  std::size_t controlled_;
  Location where_;
  double size_ = 0;    // of the next step; 0: not known yet
  State last_slopes_;  // at the state returned last, from the last stage of its step; empty: not known
};

void check_problem(const char* op, const Tensor& y0, std::span<const double> times, const OdeOptions& options,
                   Location where) {
  if (!y0.defined()) fail<Error>(op, where, "the state is an undefined tensor");
  if (y0.dtype() != DType::f32 && y0.dtype() != DType::f64)
    fail<DTypeError>(op, where, "the state {} is not f32 or f64; convert it with to(y, f32)", describe(y0));
  if (times.empty()) fail<Error>(op, where, "there are no times; the first is that of the initial state");
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (!std::isfinite(times[i])) fail<Error>(op, where, "times[{}] is {}; times are finite", i, times[i]);
    if (i > 0 && !((times[i] > times[i - 1]) == (times[1] > times[0]) && times[i] != times[i - 1]))
      fail<Error>(op, where, "times[{}] is {} after {}; let all of them increase, or all decrease", i, times[i],
                  times[i - 1]);
  }
  if (!(options.relative_tolerance >= 0) || !(options.absolute_tolerance > 0))
    fail<Error>(op, where, "the tolerances {}, relative, and {}, absolute, are not positive",
                options.relative_tolerance, options.absolute_tolerance);
  if (!(options.step >= 0)) fail<Error>(op, where, "steps of {} are not of a positive size", options.step);
  if (options.most_steps < 1) fail<Error>(op, where, "at most {} steps reach no time", options.most_steps);
}

// dy/dt as f returns it. Throws unless it fits y.
Tensor checked(const char* op, Tensor slope, double t, const Tensor& y, Location where) {
  if (!slope.defined()) fail<Error>(op, where, "f has returned an undefined tensor at t = {}", t);
  if (slope.shape() != y.shape())
    fail<ShapeError>(op, where, "f has returned {} at t = {} for the state {}; dy/dt has the shape of y",
                     describe(slope), t, describe(y));
  if (slope.dtype() != y.dtype())
    fail<DTypeError>(op, where, "f has returned {} at t = {} for the state {}; convert it with to(x, {})",
                     describe(slope), t, describe(y), name_of(y.dtype()));
  return slope;
}

Tensor solve(const char* op, const OdeFunction& f, const Tensor& y0, std::span<const double> times,
             const OdeOptions& options, Location where) {
  Solver solver(
      op, [&](double t, const State& y) { return State{checked(op, f(t, y[0]), t, y[0], where)}; }, options, 1, where);
  std::vector<Tensor> states{y0};
  for (std::size_t i = 1; i < times.size(); ++i)
    states.push_back(std::move(solver.advance({states.back()}, times[i - 1], times[i])[0]));
  return stack(states);
}

constexpr const char* adjoint_name = "odeint_adjoint";

// The data of an adjoint equation beside its tensors; an entry of the tape points to it.
struct Adjoint {
  OdeFunctionOf f;
  std::vector<double> times;
  OdeOptions options;
  std::size_t weights;
  Location where;
};

void solve_forward(CustomForward& run) {
  const auto* adjoint = static_cast<const Adjoint*>(run.op);
  std::span<const Tensor> w = run.inputs.subspan(1);
  auto f = [&](double t, const Tensor& y) { return adjoint->f(t, y, w); };
  run.outputs[0] = solve(adjoint_name, f, run.inputs[0], adjoint->times, adjoint->options, adjoint->where);
  std::memcpy(run.state, &adjoint, sizeof adjoint);
  run.saves_outputs = true;
  run.saved.assign(run.outputs.begin(), run.outputs.end());
  run.saved.insert(run.saved.end(), run.inputs.begin(), run.inputs.end());
}

// From dL/dy at all times, the states there, and w: dL/dy0 and dL/dw.
State solve_backward(const Adjoint& adjoint, const Tensor& dy, const Tensor& states, std::span<const Tensor> w) {
  auto slopes = [&](double t, const State& now) {
    State inputs{now[0]};
    inputs.insert(inputs.end(), w.begin(), w.end());
    auto f = [&](std::span<const Tensor> in) {
      return checked(adjoint_name, adjoint.f(t, in[0], in.subspan(1)), t, in[0], adjoint.where);
    };
    auto [value, products] = vjp(f, inputs, now[1], adjoint.where);
    State all{std::move(value)};
    for (const Tensor& product : products) all.push_back(-product);
    return all;
  };
  Solver solver(adjoint_name, slopes, adjoint.options, 2, adjoint.where);
  std::size_t last = adjoint.times.size() - 1;
  auto at = [](const Tensor& all, std::size_t i) { return select(all, 0, static_cast<std::int64_t>(i)); };
  State now{at(states, last), at(dy, last)};
  for (const Tensor& weight : w) now.push_back(zeros_like(weight));
  for (std::size_t i = last; i > 0; --i) {
    now = solver.advance(now, adjoint.times[i], adjoint.times[i - 1]);
    now[0] = at(states, i - 1);
    now[1] = now[1] + at(dy, i - 1);
    solver.restart();
  }
  now.erase(now.begin());
  return now;
}

void give_gradients(const CustomGradient& run) {
  const Adjoint* adjoint;
  std::memcpy(&adjoint, run.state(), sizeof adjoint);
  std::vector<Tensor> w;
  for (std::size_t i = 0; i < adjoint->weights; ++i) w.push_back(run.saved(2 + i));
  run.give(solve_backward(*adjoint, run.output(0), run.saved(0), w));
}

}  // namespace

Tensor rk4_step(const OdeFunction& f, double t, const Arg& given_y, double h) {
  return with_memory_error("rk4_step", given_y.location(), [&]() -> Tensor {
    const char* op = "rk4_step";
    Location where = given_y.location();
    CallerScope caller(where, op);
    const Tensor& y = tensor_of(op, given_y);
    const OdeOptions defaults;
    auto slopes = [&](double time, const State& now) {
      return State{checked(op, f(time, now[0]), time, now[0], where)};
    };
    return std::move(Solver(op, slopes, defaults, 1, where).classical_step({y}, t, h)[0]);
  });
}

Tensor odeint(const OdeFunction& f, const Arg& given_y0, std::span<const double> times, const OdeOptions& options) {
  return with_memory_error("odeint", given_y0.location(), [&] {
    Location where = given_y0.location();
    CallerScope caller(where, "odeint");
    const Tensor& y0 = tensor_of("odeint", given_y0);
    check_problem("odeint", y0, times, options, where);
    return solve("odeint", f, y0, times, options, where);
  });
}

Tensor odeint_adjoint(const OdeFunctionOf& f, const Arg& given_y0, std::span<const double> times,
                      const std::vector<Tensor>& w, const OdeOptions& options) {
  return with_memory_error(adjoint_name, given_y0.location(), [&] {
    Location where = given_y0.location();
    CallerScope caller(where, adjoint_name);
    const Tensor& y0 = tensor_of(adjoint_name, given_y0);
    check_problem(adjoint_name, y0, times, options, where);
    for (std::size_t i = 0; i < w.size(); ++i) {
      if (!w[i].defined()) fail<Error>(adjoint_name, where, "w[{}] is an undefined tensor", i);
      if (!is_floating(w[i].dtype()))
        fail<DTypeError>(adjoint_name, where, "w[{}] is {}, by which nothing is differentiated", i, describe(w[i]));
    }
    auto adjoint = std::make_shared<Adjoint>(Adjoint{f, {times.begin(), times.end()}, options, w.size(), where});
    static const CustomOp& op = custom_op(
        adjoint_name, {.forward = solve_forward, .gradient = give_gradients, .state_bytes = sizeof(const Adjoint*)});
    std::vector<Arg> inputs{{y0, where}};
    for (const Tensor& weight : w) inputs.emplace_back(weight, where);
    Tensor states;
    run_custom(op, adjoint.get(), inputs, {&states, 1});
    TapeList& tapes = *context().tapes;
    if (tapes.slot_of(states.body())) tapes.keep(adjoint);
    return states;
  });
}

}  // namespace reel
