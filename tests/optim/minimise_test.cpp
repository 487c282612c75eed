#include <reel/optim/minimise.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <reel/reel.h>
#include <reel/testing.h>

#include "catch.h"

using namespace reel;
using optim::minimise;
using optim::MinimiseMethod;
using optim::Minimum;
using namespace reel_test;
using testing::all_close;

namespace {

// Rosenbrock's banana, whose minimum 0 is at (1, …, 1).
Tensor rosenbrock(const Tensor& x) {
  Tensor a = slice(x, 0, 0, -1), b = slice(x, 0, 1);
  return sum(square(1.0 - a) + 100.0 * square(b - square(a)));
}

constexpr MinimiseMethod both[] = {MinimiseMethod::lbfgs, MinimiseMethod::newton_cg};

}  // namespace

TEST_CASE("both methods minimise a quadratic function at the solution of its system") {
  manual_seed(3);
  Tensor root = randn({6, 6}, {.dtype = f64}), h = matmul(root, transpose(root, 0, 1)) + eye(6, {.dtype = f64});
  Tensor b = randn({6}, {.dtype = f64}), expected = solve(h, b);
  for (MinimiseMethod method : both) {
    Minimum found = minimise([&](const Tensor& x) { return 0.5 * dot(x, matmul(h, x)) - dot(b, x); }, zeros_like(b),
                             {.method = method, .gradient_tolerance = 1e-7});
    CHECK(found.has_converged);
    CHECK(all_close(found.x, expected, {.relative = 1e-6, .absolute = 1e-6}));
    CHECK(found.value == Approx(-0.5 * dot(b, expected).item<double>()));
    CHECK(found.largest_gradient <= 1e-7);
  }
}

TEST_CASE("both methods follow Rosenbrock's valley to its end, and say how it went") {
  for (MinimiseMethod method : both) {
    Minimum found =
        minimise(rosenbrock, tensor({-1.2, 1.0, -0.5, 0.8}), {.method = method, .gradient_tolerance = 1e-8});
    CHECK(found.has_converged);
    CHECK(all_close(found.x, ones({4}, {.dtype = f64}), {.relative = 1e-6}));
    CHECK(found.value < 1e-12);
    CHECK((found.iterations > 5 && found.iterations < 100));
    CHECK(found.evaluations > found.iterations);
    Minimum cut = minimise(rosenbrock, tensor({-1.2, 1.0}), {.method = method, .max_iterations = 3});
    CHECK_FALSE(cut.has_converged);
    CHECK(cut.iterations == 3);
    CHECK(cut.value < rosenbrock(tensor({-1.2, 1.0})).item<double>());
  }
}

TEST_CASE("Newton's method leaves a saddle along negative curvature") {
  Minimum found = minimise([](const Tensor& x) { return sum(square(square(x) - 1.0)); }, tensor({0.1, -0.2}),
                           {.method = MinimiseMethod::newton_cg, .gradient_tolerance = 1e-10});
  CHECK(found.has_converged);
  CHECK(all_close(found.x, tensor({1.0, -1.0}), {.relative = 1e-8}));
}

TEST_CASE("steps to where the function is not finite are shortened") {
  for (MinimiseMethod method : both) {
    Minimum found = minimise([](const Tensor& x) { return sum(x - log(x)); }, tensor({0.01, 20.0}),
                             {.method = method, .gradient_tolerance = 1e-8});
    CHECK(found.has_converged);
    CHECK(all_close(found.x, tensor({1.0, 1.0}), {.relative = 1e-6}));
  }
}

TEST_CASE("the shape and the dtype of the start stay, and f32 ends where it resolves no more") {
  Tensor start = zeros({2, 2}).requires_grad();
  for (MinimiseMethod method : both) {
    Minimum found = minimise([](const Tensor& x) { return sum(square(x - 3.0f)); }, start,
                             {.method = method, .gradient_tolerance = 0});
    CHECK(found.x.shape() == Shape{2, 2});
    CHECK(found.x.dtype() == f32);
    CHECK_FALSE(found.x.is_parameter());
    CHECK(all_close(found.x, full({2, 2}, 3)));
    CHECK(found.iterations < 200);
  }
  CHECK_FALSE(start.grad().defined());
  CHECK(all_close(start, zeros({2, 2})));
}

TEST_CASE("a search that stands still ends, and says that it has not converged") {
  manual_seed(3);
  for (DType dtype : {f32, f64})
    for (MinimiseMethod method : both) {
      Tensor root = randn({20, 20}, {.dtype = dtype}), h = matmul(root, transpose(root)),
             b = randn({20}, {.dtype = dtype});
      struct Case {
        std::string name;
        std::function<Tensor(const Tensor&)> f;
        Tensor start;
      };
      for (const Case& c :
           std::vector<Case>{{"an ill-conditioned quadratic",
                              [&](const Tensor& x) { return 0.5 * dot(x, matmul(h, x)) - dot(b, x); }, zeros_like(b)},
                             {"a valley far above 0", [](const Tensor& x) { return rosenbrock(x) + 1e4; },
                              to(tensor({-1.2, 1.0, -0.5}), dtype)},
                             {"a gradient of the wrong sign",
                              [](const Tensor& x) { return 2.0 * stop_gradient(sum(x)) - sum(x); }, ones_like(b)}}) {
        INFO(name_of(dtype) << ", " << (method == MinimiseMethod::lbfgs ? "lbfgs" : "newton_cg") << ", " << c.name);
        Minimum found = minimise(c.f, c.start, {.method = method, .max_iterations = 1000, .gradient_tolerance = 0});
        CHECK(found.iterations < 150);
        CHECK(found.evaluations < 10'000);
        CHECK(found.has_converged == (found.largest_gradient == 0));
      }
    }
}

TEST_CASE("least squares fits a line exactly, and an exponential decay") {
  Tensor t = arange(0.0, 10.0);
  Minimum line = optim::least_squares([&](const Tensor& w) { return w(0) + w(1) * t - (2.0 + 0.5 * t); },
                                      zeros({2}, {.dtype = f64}));
  CHECK(line.has_converged);
  CHECK(all_close(line.x, tensor({2.0, 0.5}), {.relative = 1e-8}));
  Tensor y = 3.0 * exp(-0.7 * t) + 0.2;
  Minimum decay =
      optim::least_squares([&](const Tensor& w) { return w(0) * exp(-w(1) * t) + w(2) - y; }, tensor({1.0, 0.1, 0.0}));
  CHECK(decay.has_converged);
  CHECK(all_close(decay.x, tensor({3.0, 0.7, 0.2}), {.relative = 1e-7}));
  CHECK(decay.value < 1e-15);
  CHECK(decay.iterations < 30);
}

TEST_CASE("least squares takes residuals that remain, parameters without any, and Rosenbrock's function") {
  // The mean is the least squares of its values.
  Tensor values = tensor({1.0, 2.0, 6.0});
  Minimum mean_of_values = optim::least_squares([&](const Tensor& x) { return x(0) - values; }, tensor({0.0, 5.0}));
  CHECK(mean_of_values.has_converged);
  CHECK(all_close(mean_of_values.x, tensor({3.0, 5.0}), {.relative = 1e-8}));
  CHECK(mean_of_values.value == Approx(7));
  Minimum valley = optim::least_squares(
      [](const Tensor& x) {
        return stack({10.0 * (x(1) - square(x(0))), 1.0 - x(0)});
      },
      tensor({-1.2, 1.0}));
  CHECK(valley.has_converged);
  CHECK(all_close(valley.x, ones({2}, {.dtype = f64}), {.relative = 1e-7}));
}

TEST_CASE("the damping of least squares grows faster with each rejected step, and anew after one that is taken") {
  // For r(x) = x a step leads to x λ / (1 + λ), so the places tell λ. The first, second, fourth and fifth are refused.
  std::vector<double> tried;
  Minimum found = optim::least_squares(
      [&](const Tensor& x) {
        if (double value = x.item(); tried.empty() || tried.back() != value) tried.push_back(value);
        std::size_t step = tried.size() - 1;
        return x + (step == 1 || step == 2 || step == 4 || step == 5 ? 100.0 : 0.0);
      },
      tensor({8.0}), {.max_iterations = 2, .damping = 0.5});
  CHECK(found.iterations == 2);
  REQUIRE(tried.size() == 7);
  // The linear model is exact, so that λ becomes a third after the third step.
  const double expected[] = {0.5, 1, 4, 4.0 / 3, 8.0 / 3, 32.0 / 3};
  for (std::size_t i = 0; i < 6; ++i) {
    double from = tried[i < 3 ? 0 : 3];
    CHECK(from / (from - tried[i + 1]) - 1 == Approx(expected[i]));
  }
}

TEST_CASE("what cannot be minimised is refused") {
  auto error = [](auto f, const Tensor& start, optim::MinimiseOptions options = {}) {
    return error_of<Error>([&] { minimise(f, start, options); });
  };
  auto square_sum = [](const Tensor& x) { return sum(square(x)); };
  CHECK_THAT(error(square_sum, Tensor()), contains("optim::minimise: the start is an undefined tensor; at "));
  CHECK_THAT(error(square_sum, ones({2}, {.dtype = i64})), contains("must be f32 or f64"));
  CHECK_THAT(error([](const Tensor& x) { return x; }, ones({2})), contains("it must return one element"));
  CHECK_THAT(error([](const Tensor& x) { return sum(log(x)); }, zeros({2})), contains("not finite at the start"));
  CHECK_THAT(error(square_sum, ones({2}), {.max_iterations = -1}), contains(".max_iterations is -1"));
  CHECK_THAT(error_of<Error>([&] { optim::least_squares(square_sum, ones({2}), {.damping = 0}); }),
             contains("optim::least_squares: ") && contains(".damping 0;"));
  CHECK_THAT(error_of<Error>([&] { optim::least_squares([](const Tensor& x) { return log(x); }, zeros({2})); }),
             contains("optim::least_squares: the function or its gradient is not finite at the start"));
}

TEST_CASE("the example of minimise fits a line") {
  Tensor x = randn({20, 3}), y = matmul(x, tensor({1.0f, -2.0f, 0.5f}));
#include "examples/optim_minimise_1.h"
  CHECK(all_close(w, tensor({1.0f, -2.0f, 0.5f}), {.relative = 1e-3, .absolute = 1e-3}));
}
