#include <reel/reel.h>

#include "catch.h"
#include "tape/nested.h"

using namespace reel;
using reel_test::third_derivative;

namespace {

Tensor normal(const Shape& shape) { return randn(shape, {.dtype = f64}); }

double difference(const Tensor& a, const Tensor& b) { return max(abs(a - b)).item(); }

// e^sin x and its first three derivatives, derived by hand.
Tensor composite(const Tensor& x) { return exp(sin(x)); }
Tensor third_of_composite(const Tensor& x) {
  Tensor s = sin(x), c = cos(x);
  return (c * c * c - 3.0 * s * c - c) * exp(s);
}

// The maximum of live bytes at the end of an op while f runs, minus those before.
template <class F>
std::size_t peak_of(F f) {
  release_memory_cache();  // counting live bytes visits each cached block
  std::size_t before = memory_statistics().live_bytes, peak = before;
  debug::Listen listen([&](const debug::OpEvent&) { peak = std::max(peak, memory_statistics().live_bytes); });
  f();
  return peak - before;
}

}  // namespace

TEST_CASE("third derivatives of a composite function agree with the closed form through nested tapes") {
  Tensor x = linspace(-2, 2, 9, {.dtype = f64});
  Tensor third = third_derivative([](const Tensor& x) { return composite(x); }, x);
  CHECK(difference(third, third_of_composite(x)) < 1e-13);
}

TEST_CASE("third derivatives of a composite function agree with the closed form through nested functions") {
  Tensor x = linspace(-2, 2, 9, {.dtype = f64}), one = ones_like(x), third = third_of_composite(x);
  auto along = [&](auto f) { return [=](const Tensor& x) { return jvp(f, x, one).product; }; };
  CHECK(difference(along(along(along(composite)))(x), third) < 1e-13);
  auto back = [&](auto f) { return [=](const Tensor& x) { return vjp(f, x, one).product; }; };
  CHECK(difference(back(back(back(composite)))(x), third) < 1e-13);
  CHECK(difference(back(along(back(composite)))(x), third) < 1e-13);
  auto total = [](const Tensor& x) { return sum(composite(x)); };
  auto curvature = [&](const Tensor& x) { return sum(hvp(total, x, one).product); };
  CHECK(difference(jacobian(curvature, x), third) < 1e-13);
  Tensor cube = jacobian([&](const Tensor& x) { return hessian(total, x); }, x);
  for (int i = 0; i < 9; ++i) CHECK(difference(cube(i, i, i), third(i)) < 1e-13);
  CHECK(difference(sum(cube), sum(third)) < 1e-12);
}

TEST_CASE("the hessian of a two-layer net agrees with differences of its gradient") {
  manual_seed(1);
  Tensor x = normal({6, 3}), y = normal({6, 2});
  TensorFunction loss = [&](std::span<const Tensor> w) {
    return mean(square(matmul(tanh(matmul(x, w[0]) + w[1]), w[2]) + w[3] - y));
  };
  std::vector<Tensor> weights{normal({3, 4}), normal({4}), normal({4, 2}), normal({2})};
  std::vector<std::vector<Tensor>> blocks = hessian(loss, weights);
  constexpr double step = 1e-5;  // what is cut off is of the order of step², what is rounded of 1e-16 / step
  for (std::size_t k = 0; k < weights.size(); ++k) {
    for (std::int64_t i = 0; i < weights[k].numel(); ++i) {
      auto gradients_at = [&](double move) {
        std::vector<Tensor> moved = weights;
        moved[k] = copy(weights[k]);
        moved[k].write<double>()[i] += move;
        return jacobian(loss, moved);
      };
      std::vector<Tensor> above = gradients_at(step), below = gradients_at(-step);
      for (std::size_t j = 0; j < weights.size(); ++j) {
        Tensor column = select(reshape(blocks[j][k], {weights[j].numel(), weights[k].numel()}), 1, i);
        CHECK(difference(column, reshape((above[j] - below[j]) / (2 * step), {-1})) < 1e-8);
      }
    }
  }
}

TEST_CASE("hvp never forms the hessian: its memory is in proportion to the input's") {
  auto f = [](const Tensor& x) { return exp(mean(sin(x) * x)); };
  constexpr std::int64_t few = 500, many = 200'000;
  Tensor x = normal({few}), large = normal({many});
  constexpr std::size_t element = sizeof(double), vectors = 40;
  hvp(f, x, x);
  CHECK(peak_of([&] { hessian(f, x); }) > few * few * element);
  CHECK(peak_of([&] { hvp(f, x, x); }) < vectors * few * element);
  // Here the hessian would take 320 GB.
  CHECK(peak_of([&] { hvp(f, large, large); }) < vectors * many * element);
}
