#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>

#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

#include "../../lib/optim/line_search.h"
#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

double differentiated(const Tensor& loss, Tape& tape) {
  tape.backward(loss);
  return loss.item();
}

double minimise(optim::LBFGS& lbfgs, const std::function<Tensor()>& loss, int steps) {
  double value = 0;
  for (int i = 0; i < steps; ++i)
    value = lbfgs.step([&] {
      Tape tape;
      return differentiated(loss(), tape);
    });
  return value;
}

}  // namespace

TEST_CASE("LBFGS finds the end of Rosenbrock's valley, in f64 and f32") {
  for (DType dtype : {f64, f32}) {
    Tensor x = to(tensor({-1.2}), dtype).requires_grad(), y = to(tensor({1.0}), dtype).requires_grad();
    optim::LBFGS lbfgs({x, y}, {.max_iterations = 60, .tolerance_change = 1e-15});
    minimise(
        lbfgs, [&] { return sum(square(1 - x) + 100 * square(y - square(x))); }, 2);
    CHECK(x.item() == Approx(1).epsilon(dtype == f64 ? 1e-6 : 1e-2));
    CHECK(y.item() == Approx(1).epsilon(dtype == f64 ? 1e-6 : 1e-2));
  }
}

TEST_CASE("LBFGS solves a convex quadratic in about as many iterations as there are unknowns") {
  Tensor w = zeros({5}, {.dtype = f64}).requires_grad();
  Tensor scales = tensor({1.0, 2.0, 3.0, 4.0, 5.0});
  optim::LBFGS lbfgs({w}, {.max_iterations = 15});
  minimise(
      lbfgs, [&] { return sum(scales * square(w - scales)); }, 1);
  for (std::size_t i = 0; i < 5; ++i)
    CHECK(w.to_vector<double>()[i] == Approx(static_cast<double>(i + 1)).epsilon(1e-6));
}

TEST_CASE("an outer tape can be the loss's own, and without line search the rate is the length") {
  Tensor w = tensor({3.0}).requires_grad();
  optim::LBFGS lbfgs({w}, {.learning_rate = 0.25, .max_iterations = 1, .line_search = false});
  Tape tape;
  int calls = 0;
  double loss = lbfgs.step([&] {
    ++calls;
    return differentiated(sum(square(w)), tape);
  });
  CHECK(loss == 9);
  CHECK(calls == 1);
  // The first length is min(1, 1 / Σ|g|) of the rate: by 6 · 0.25 / 6.
  CHECK(w.item() == Approx(2.75));
}

TEST_CASE("frozen parameters stay, and parameters without a gradient do not matter") {
  Tensor a = tensor({1.0}).requires_grad(), b = tensor({2.0}).requires_grad(), c = tensor({3.0}).requires_grad();
  b.requires_grad(false);
  optim::LBFGS lbfgs({a, b, c});
  minimise(
      lbfgs, [&] { return sum(square(a * b)); }, 2);
  CHECK(std::abs(a.item()) < 1e-4);
  CHECK(b.item() == 2);
  CHECK(c.item() == 3);
}

TEST_CASE("a gradient by rows is made dense") {
  Tensor table = ones({4, 1}, {.dtype = f64}).requires_grad();
  optim::LBFGS lbfgs({table});
  minimise(
      lbfgs, [&] { return sum(square(embedding(table, tensor({std::int64_t{1}}), {.row_gradient = true}))); }, 1);
  CHECK(table.to_vector<double>()[0] == 1);
  CHECK(std::abs(table.to_vector<double>()[1]) < 1e-5);
}

TEST_CASE("where the loss is not finite a length is too large, and a start there is an error") {
  Tensor w = tensor({0.5}).requires_grad();
  optim::LBFGS lbfgs({w}, {.max_iterations = 30});
  // −log(1 − x) is NaN beyond 1, which the first length exceeds.
  minimise(
      lbfgs, [&] { return sum(20 * square(w - 0.98) - 1e-3 * log(1 - w)); }, 2);
  CHECK(w.item() < 1);
  CHECK(w.item() > 0.9);
  Tensor bad = tensor({std::numeric_limits<double>::quiet_NaN()}).requires_grad();
  optim::LBFGS stuck({bad});
  CHECK_THAT(error_of<Error>([&] {
               minimise(
                   stuck, [&] { return sum(bad * 2); }, 1);
             }),
             contains("LBFGS: the loss nan, or its gradient, is not finite"));
}

TEST_CASE("what the loss throws comes out, with the parameters from before the direction") {
  Tensor w = tensor({3.0}).requires_grad();
  optim::LBFGS lbfgs({w});
  int calls = 0;
  auto loss = [&] {
    if (++calls == 2) throw std::runtime_error("enough");
    Tape tape;
    return differentiated(sum(square(w)), tape);
  };
  CHECK_THROWS_AS(lbfgs.step(loss), std::runtime_error);
  CHECK(w.item() == 3);
  CHECK(lbfgs.step(loss) == 9);
  CHECK(std::abs(w.item()) < 1e-3);
}

TEST_CASE("LBFGS needs a loss, and options in range") {
  std::vector<Tensor> w{tensor({1.0}).requires_grad()};
  optim::LBFGS lbfgs(w);
  CHECK_THAT(error_of<Error>([&] { lbfgs.step(); }), contains("LBFGS: it needs the loss at several places"));
  auto text = [&](const optim::LBFGSOptions& options) {
    return error_of<Error>([&] { optim::LBFGS refused(w, options); });
  };
  CHECK_THAT(text({.learning_rate = -1}), contains("the learning rate -1"));
  CHECK_THAT(text({.max_iterations = 0}), contains("at least one iteration a step is needed, not 0"));
  CHECK_THAT(text({.max_evaluations = -1}), contains("number of evaluations -1"));
  CHECK_THAT(text({.tolerance_gradient = -1}), contains("tolerance of gradients -1"));
  CHECK_THAT(text({.history_size = 0}), contains("a history of at least one change is needed, not 0"));
}

TEST_CASE("a line search ends at a point that meets the strong Wolfe conditions") {
  using Function = std::function<std::pair<double, double>(double)>;  // value and slope
  const Function functions[] = {
      [](double t) { return std::pair((t - 3) * (t - 3), 2 * (t - 3)); },
      [](double t) { return std::pair(-t / (t * t + 2), (t * t - 2) / ((t * t + 2) * (t * t + 2))); },
      [](double t) { return std::pair(std::cos(t) - 0.1 * t, -std::sin(t) - 0.1); },
      [](double t) { return std::pair(std::exp(t) - 30 * t, std::exp(t) - 30); },
  };
  for (const Function& f : functions)
    for (double first : {1e-3, 0.1, 1.0, 50.0}) {
      CAPTURE(first);
      auto [value, slope] = f(0);
      detail::LineSearch found = detail::search_line(
          [&](double t) {
            auto [value, slope] = f(t);
            return detail::LinePoint{t, value, slope, {}};
          },
          {0, value, slope, {}}, first, 1e-12);
      CHECK(found.point.value <= value + 1e-4 * found.point.length * slope);
      CHECK(std::abs(found.point.slope) <= 0.9 * std::abs(slope));
      CHECK(found.evaluations <= 26);
    }
}

TEST_CASE("losses that are infinite or no numbers are too far, and LBFGS finds its way back") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (double beyond : {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()})
    for (double rate : {1.0, 10.0, 1e4}) {
      CAPTURE(beyond, rate);
      Tensor w = tensor({0.0}).requires_grad();
      optim::LBFGS lbfgs({w}, {.learning_rate = rate});
      for (int i = 0; i < 3; ++i)
        lbfgs.step([&] {
          if (!(std::abs(w.item()) <= 1.5)) return beyond;
          Tape tape;
          return differentiated(sum(3 * square(w - 1.4)), tape);
        });
      CHECK(w.item() == Approx(1.4));
    }
}

TEST_CASE("LBFGS takes as many iterations as there are numbers") {
  Tensor w = tensor({3.0}).requires_grad();
  optim::LBFGS lbfgs({w}, {.max_iterations = std::numeric_limits<std::int64_t>::max()});
  minimise(
      lbfgs, [&] { return sum(square(w) + square(square(w))); }, 1);
  CHECK(std::abs(w.item()) < 1e-4);
}
