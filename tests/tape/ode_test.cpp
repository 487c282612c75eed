#include <reel/debug/gradcheck.h>
#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

Tensor draw(const Shape& shape) { return randn(shape, {.dtype = f64}); }

Tensor number(double value) { return full({}, value, {.dtype = f64}); }

double difference(const Tensor& a, const Tensor& b) { return max(abs(a - b)).item(); }

constexpr OdeOptions exact{.relative_tolerance = 1e-11, .absolute_tolerance = 1e-12};

// y'' = −y as a system: from (1, 0), (cos t, −sin t).
Tensor oscillator(double, const Tensor& y) { return concat({slice(y, 0, 1, 2), -slice(y, 0, 0, 1)}); }
Tensor oscillation(std::span<const double> times) {
  std::vector<Tensor> rows;
  for (double t : times) rows.push_back(tensor({std::cos(t), -std::sin(t)}));
  return stack(rows);
}

// A pendulum with friction: w holds the squared frequency and the friction.
Tensor pendulum(double t, const Tensor& y, std::span<const Tensor> w) {
  Tensor angle = select(y, -1, 0), speed = select(y, -1, 1);
  return stack({speed, -w[0] * sin(angle) - w[1] * speed + 0.1 * std::cos(t)}, -1);
}

}  // namespace

TEST_CASE("solutions in closed form are met at all times, in both directions of time") {
  std::vector<double> times{0, 0.1, 1, 1.5, 7}, back{7, 3, 0};
  Tensor y0 = tensor({1.0, 0.0});
  CHECK(difference(odeint(oscillator, y0, times, exact), oscillation(times)) < 1e-9);
  CHECK(difference(odeint(oscillator, oscillation(back)(0), back, exact), oscillation(back)) < 1e-9);
  // f that depends on the time: y' = 2 t y.
  Tensor grown = odeint([](double t, const Tensor& y) { return 2 * t * y; }, ones({3, 2}, {.dtype = f64}),
                        std::vector{0.0, 0.5, 1.0}, exact);
  CHECK(grown.shape() == Shape{3, 3, 2});
  CHECK(difference(grown(2), full({3, 2}, std::numbers::e, {.dtype = f64})) < 1e-9);
  CHECK(odeint(oscillator, y0, std::vector{3.0}).shape() == Shape{1, 2});
  CHECK(odeint([](double, const Tensor& y) { return y; }, zeros({0, 2}), times).shape() == Shape{5, 0, 2});
}

TEST_CASE("the error of the default tolerances is near them, in f32 too") {
  std::vector<double> times{0, 5};
  CHECK(difference(odeint(oscillator, tensor({1.0, 0.0}), times), oscillation(times)) < 2e-4);
  CHECK(difference(odeint(oscillator, tensor({1.0F, 0.0F}), times), to(oscillation(times), f32)) < 2e-4);
}

TEST_CASE("the methods are of orders 4 and 5: halving a step divides the error by about 2 to that power") {
  std::vector<double> times{0, 2};
  auto error = [&](double step) {
    OdeOptions options{.method = OdeMethod::runge_kutta4, .step = step};
    return difference(odeint(oscillator, tensor({1.0, 0.0}), times, options), oscillation(times));
  };
  double order = std::log2(error(0.1) / error(0.05));
  CHECK(order > 3.8);
  CHECK(order < 4.3);
  Tensor y = tensor({1.0, 0.0});
  for (int i = 0; i < 20; ++i) y = rk4_step(oscillator, 0.1 * i, y, 0.1);
  OdeOptions tenths{.method = OdeMethod::runge_kutta4, .step = 0.1};
  CHECK(difference(y, odeint(oscillator, tensor({1.0, 0.0}), times, tenths)(1)) < 1e-14);
  // A step size of order 5 follows the tolerance to the power of 1/5.
  auto calls = [&](double tolerance) {
    int count = 0;
    auto f = [&](double t, const Tensor& y) { return ++count, oscillator(t, y); };
    odeint(f, tensor({1.0, 0.0}), std::vector{0.0, 50.0},
           {.relative_tolerance = tolerance, .absolute_tolerance = tolerance});
    return count;
  };
  double ratio = calls(1e-10) / double(calls(1e-5));
  CHECK(ratio > 6);
  CHECK(ratio < 14);
}

TEST_CASE("an adaptive method calls f once at each state, also where given times divide the solution") {
  struct Call {
    double t;
    Tensor y;
  };
  auto calls_of = [](std::span<const double> times) {
    std::vector<Call> calls;
    odeint(
        [&](double t, const Tensor& y) {
          calls.push_back({t, y});
          return oscillator(t, y);
        },
        tensor({1.0, 0.0}), times);
    return calls;
  };
  std::vector<double> increasing{0, 0.1, 0.3, 0.7, 2.1, 9.9}, decreasing{2.1, 0.7, 0.3, 0.1, -8};
  for (const std::vector<double>& times : {increasing, decreasing}) {
    std::vector<Call> calls = calls_of(times);
    for (std::size_t i = 0; i < calls.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (calls[i].t == calls[j].t) CHECK(difference(calls[i].y, calls[j].y) > 0);
    // The two last stages of a step that ends at a given time are at that time to the bit.
    for (std::size_t i = 1; i < times.size(); ++i) {
      CAPTURE(times[i]);
      CHECK(std::ranges::count(calls, times[i], &Call::t) == 2);
    }
  }
  // Two calls choose the first size; an interval of one step costs the 6 new stages of it.
  auto count = [](std::span<const double> times) {
    int calls = 0;
    odeint([&](double, const Tensor& y) { return ++calls, ones_like(y); }, tensor({1.0}), times);
    return calls;
  };
  std::vector<double> times{0};
  while (times.size() < 9) times.push_back(static_cast<double>(times.size()));
  std::size_t all = times.size();
  int first = count(std::span(times).first(2));
  CHECK((first - 2) % 6 == 0);
  CHECK(count(times) == first + 6 * static_cast<int>(all - 2));
}

TEST_CASE("an adjoint equation evaluates f anew where a saved state replaces that of the steps back") {
  std::vector<double> times{0, 1, 2, 3};
  std::vector<Tensor> w{number(2.0), number(0.3)};
  std::vector<std::pair<double, Tensor>> calls;
  auto f = [&](double t, const Tensor& y, std::span<const Tensor> in) {
    calls.emplace_back(t, y);
    return pendulum(t, y, in);
  };
  Tape tape;
  tape.watch(w[0]);
  Tensor y = odeint_adjoint(f, tensor({1.0, 0.0}), times, w);
  Tensor states = stop_gradient(y);
  std::size_t forward = calls.size();
  tape.gradient(sum(square(y)), {w[0]});
  for (std::size_t i = 1; i < times.size(); ++i) {
    CAPTURE(i);
    auto is_saved = [&](const auto& call) { return call.first == times[i] && difference(call.second, states(i)) == 0; };
    CHECK(std::count_if(calls.begin() + static_cast<std::ptrdiff_t>(forward), calls.end(), is_saved) == 1);
  }
}

TEST_CASE("a solution is differentiated through its steps, to second order") {
  manual_seed(1);
  std::vector<double> times{0, 0.3, 0.5};
  auto f = [&](std::span<const Tensor> in) {
    auto slope = [&](double t, const Tensor& y) { return pendulum(t, y, in.subspan(1)); };
    return odeint(slope, in[0], times, {.method = OdeMethod::runge_kutta4, .step = 0.1});
  };
  std::vector<Tensor> inputs{draw({2, 2}), number(2.0), number(0.3)};
  auto report = debug::gradcheck(f, inputs);
  INFO(report.text);
  CHECK(report);
  CHECK(debug::gradgradcheck(f, inputs));
}

TEST_CASE("the gradient of the adjoint equation is that through the steps, at any times and of any tensors") {
  manual_seed(2);
  std::vector<double> increasing{0, 0.4, 1, 1.1}, decreasing{2, 1, 0.5};
  for (const std::vector<double>& times : {increasing, decreasing}) {
    std::vector<Tensor> w{number(2.0), number(0.3)};
    Tensor y0 = draw({3, 2}), weights = draw({std::ssize(times), 3, 2});
    auto gradients = [&](auto solve) {
      Tape tape;
      for (const Tensor* x : {&y0, &w[0], &w[1]}) tape.watch(*x);
      return tape.gradient(sum(weights * solve()), {y0, w[0], w[1]});
    };
    auto by_steps = gradients(
        [&] { return odeint([&](double t, const Tensor& y) { return pendulum(t, y, w); }, y0, times, exact); });
    auto by_adjoint = gradients([&] { return odeint_adjoint(pendulum, y0, times, w, exact); });
    for (std::size_t i = 0; i < 3; ++i) {
      CAPTURE(i);
      CHECK(difference(by_steps[i], by_adjoint[i]) < 1e-8);
    }
    CHECK(difference(odeint_adjoint(pendulum, y0, times, w, exact),
                     odeint([&](double t, const Tensor& y) { return pendulum(t, y, w); }, y0, times, exact)) == 0);
  }
}

TEST_CASE("the gradient of the adjoint equation agrees with differences, in first and second order") {
  manual_seed(3);
  std::vector<double> times{0, 0.4, 0.7};
  auto f = [&](std::span<const Tensor> in) {
    return odeint_adjoint(pendulum, in[0], times, {in[1], in[2]}, {.method = OdeMethod::runge_kutta4, .step = 0.02});
  };
  // Steps back do not repeat those forward, so gradients differ from those of the numbers by the method's error.
  std::vector<Tensor> inputs{draw({1, 2}), number(2.0), number(0.3)};
  auto report = debug::gradcheck(f, inputs);
  INFO(report.text);
  CHECK(report);
  auto second = debug::gradgradcheck(f, inputs);
  INFO(second.text);
  CHECK(second);
}

TEST_CASE("the weights of a module get the gradient of an adjoint equation, and the tape keeps no step") {
  manual_seed(4);
  nn::Linear field(2, 2, {.dtype = f64});
  std::vector<NamedTensor> weights = field.named_parameters();
  auto f = [&](double, const Tensor& y, std::span<const Tensor> w) {
    for (std::size_t i = 0; i < w.size(); ++i) weights[i].tensor = w[i];
    return tanh(nn::functional_call(field, weights, y));
  };
  Tensor y0 = draw({4, 2});
  auto gradients = [&](auto solve) {
    Tape tape;
    return tape.gradient(sum(square(solve())), field.parameters());
  };
  std::vector<double> times{0, 1, 2};
  auto by_adjoint = gradients([&] { return odeint_adjoint(f, y0, times, field.parameters(), exact); });
  auto by_steps =
      gradients([&] { return odeint([&](double, const Tensor& y) { return tanh(field(y)); }, y0, times, exact); });
  for (std::size_t i = 0; i < by_steps.size(); ++i) CHECK(difference(by_steps[i], by_adjoint[i]) < 1e-8);

  auto entries = [&](double step) {
    Tape tape;
    Tensor y = odeint_adjoint(f, y0, times, field.parameters(), {.method = OdeMethod::runge_kutta4, .step = step});
    return tape.bytes();
  };
  CHECK(entries(0.01) == entries(1));
}

TEST_CASE("an equation that cannot be solved says so in a sentence") {
  Tensor y = tensor({1.0, 2.0});
  std::vector<double> times{0, 1};
  auto same = [](double, const Tensor& y) { return y; };
  int line = __LINE__ + 1;
  CHECK(error_of<Error>([&] { odeint(same, y, std::vector<double>{}); }) ==
        "odeint: there are no times; the first is that of the initial state; at " +
            to_string(Location{__FILE__, line}));
  CHECK_THAT(error_of<Error>([&] {
               odeint(same, y, std::vector{0.0, 1.0, 1.0});
             }),
             contains("times[2] is 1 after 1; let all of them increase, or all decrease"));
  CHECK_THAT(error_of<Error>([&] {
               odeint(same, y, std::vector{0.0, 1.0, 0.5});
             }),
             contains("times[2] is 0.5 after 1"));
  CHECK_THAT(error_of<Error>([&] { odeint(same, y, std::vector{0.0, double(NAN)}); }), contains("times[1] is nan"));
  CHECK_THAT(error_of<Error>([&] { odeint(same, y, times, {.absolute_tolerance = 0}); }), contains("not positive"));
  CHECK_THAT(error_of<Error>([&] { odeint(same, y, times, {.step = -1}); }), contains("steps of -1"));
  CHECK_THAT(error_of<Error>([&] { odeint(same, y, times, {.most_steps = 0}); }), contains("at most 0 steps"));
  CHECK_THAT(error_of<Error>([&] { odeint(same, Tensor(), times); }), contains("undefined"));
  CHECK_THAT(error_of<DTypeError>([&] { odeint(same, tensor({1, 2}), times); }), contains("is not f32 or f64"));
  CHECK_THAT(error_of<ShapeError>([&] { odeint([](double, const Tensor& y) { return sum(y); }, y, times); }),
             contains("f has returned () f64 at t = 0 for the state (2,) f64; dy/dt has the shape of y"));
  CHECK_THAT(error_of<DTypeError>([&] { odeint([](double, const Tensor& y) { return to(y, f32); }, y, times); }),
             contains("f has returned (2,) f32 at t = 0"));
  CHECK_THAT(error_of<Error>([&] { odeint([](double, const Tensor&) { return Tensor(); }, y, times); }),
             contains("undefined tensor at t = 0"));
  // y' = y² from 1 has a pole at t = 1.
  auto pole = [](double, const Tensor& y) { return square(y); };
  CHECK_THAT(error_of<Error>([&] {
               odeint(pole, tensor({1.0}), std::vector{0.0, 2.0});
             }),
             contains("has become too small to change t"));
  OdeOptions fixed{.method = OdeMethod::runge_kutta4, .step = 0.01};
  CHECK_THAT(error_of<Error>([&] {
               odeint(pole, tensor({1.0}), std::vector{0.0, 2.0}, fixed);
             }),
             contains("the state at t = 2 is not finite"));
  CHECK_THAT(error_of<Error>([&] {
               odeint(oscillator, y, std::vector{0.0, 1000.0}, {.most_steps = 20});
             }),
             contains("20 steps have come from the time before 1000 to t = "));
  CHECK_THAT(error_of<ShapeError>([&] { rk4_step([](double, const Tensor& y) { return sum(y); }, 0, y, 0.1); }),
             contains("rk4_step: f has returned ()"));
}

TEST_CASE("the adjoint equation refuses what would lose a gradient") {
  Tensor y = tensor({1.0, 2.0}), rate = number(2.0), offset = number(1.0);
  std::vector<double> times{0, 1};
  Tape tape;
  tape.watch(rate);
  tape.watch(offset);
  auto f = [&](double, const Tensor& y, std::span<const Tensor> w) { return w[0] * y + offset; };
  CHECK_THAT(error_of<TapeError>([&] { odeint_adjoint(f, y, times, {rate}); }),
             contains("odeint_adjoint: its forward uses () f64") && contains("is tracked but not among its inputs"));
  CHECK_THAT(error_of<Error>([&] { odeint_adjoint(f, y, times, {Tensor()}); }),
             contains("w[0] is an undefined tensor"));
  CHECK_THAT(error_of<DTypeError>([&] { odeint_adjoint(f, y, times, {zeros({}, {.dtype = i32})}); }),
             contains("w[0] is () i32"));
}
