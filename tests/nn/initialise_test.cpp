#include <reel/nn.h>
#include <reel/ops.h>

#include <algorithm>
#include <cmath>

#include "catch.h"

using namespace reel;
using reel_test::contains;
using reel_test::error_of;

namespace {

struct Spread {
  double mean = 0, deviation = 0, low = 0, high = 0;
};

Spread spread_of(const Tensor& x) {
  std::vector<double> values = to(x, f64).to_vector<double>();
  auto count = static_cast<double>(values.size());
  Spread spread{.low = *std::min_element(values.begin(), values.end()),
                .high = *std::max_element(values.begin(), values.end())};
  for (double value : values) spread.mean += value / count;
  for (double value : values) spread.deviation += (value - spread.mean) * (value - spread.mean) / count;
  spread.deviation = std::sqrt(spread.deviation);
  return spread;
}

// Uniform on ±bound: deviation bound / √3, and values close to both ends.
void check_uniform(const Tensor& x, double bound) {
  Spread spread = spread_of(x);
  CHECK(std::abs(spread.mean) < 0.02 * bound);
  CHECK(spread.deviation == Approx(bound / std::sqrt(3.0)).epsilon(0.02));
  CHECK(spread.low >= -bound);
  CHECK(spread.low < -0.99 * bound);
  CHECK(spread.high <= bound);
  CHECK(spread.high > 0.99 * bound);
}

void check_normal(const Tensor& x, double mean, double deviation) {
  Spread spread = spread_of(x);
  CHECK(std::abs(spread.mean - mean) < 0.02 * deviation);
  CHECK(spread.deviation == Approx(deviation).epsilon(0.02));
  CHECK(spread.high > mean + 3 * deviation);
}

}  // namespace

TEST_CASE("constant and ranges of initialisers are as given") {
  manual_seed(1);
  CHECK(nn::constant(2.5)({2}, {}).to_vector<float>() == std::vector<float>{2.5f, 2.5f});
  Spread spread = spread_of(nn::uniform(-1, 3)({100, 200}, {}));
  CHECK(spread.mean == Approx(1).margin(0.03));
  CHECK(spread.low >= -1);
  CHECK(spread.high <= 3);
  check_normal(nn::normal(5, 0.5)({100, 200}, {}), 5, 0.5);
}

TEST_CASE("xavier and he initialisers follow the fans of (in, out)") {
  manual_seed(1);
  Shape shape{100, 300};
  check_uniform(nn::xavier_uniform()(shape, {}), std::sqrt(6.0 / 400));
  check_normal(nn::xavier_normal(2)(shape, {}), 0, 2 * std::sqrt(2.0 / 400));
  check_uniform(nn::he_uniform()(shape, {}), std::sqrt(6.0 / 100));
  check_normal(nn::he_normal()(shape, {}), 0, std::sqrt(2.0 / 100));
}

TEST_CASE("the fans of a convolution's weight (out, in, k…) count its window") {
  manual_seed(1);
  check_normal(nn::he_normal(1)({64, 20, 3, 5}, {}), 0, 1 / std::sqrt(20.0 * 15));
  check_uniform(nn::xavier_uniform()({64, 20, 3, 5}, {}), std::sqrt(6.0 / (20 * 15 + 64 * 15)));
}

TEST_CASE("initialisers draw in the dtype and from the generator they are given") {
  Generator first(7), second(7);
  Tensor a = nn::normal()({5}, {.dtype = f64, .generator = &first});
  Tensor b = nn::normal()({5}, {.dtype = f64, .generator = &second});
  CHECK(a.dtype() == f64);
  CHECK(a.to_vector<double>() == b.to_vector<double>());
  CHECK(nn::constant(1)({2}, {.dtype = bf16}).dtype() == bf16);
}

TEST_CASE("a vector has no fans") {
  CHECK_THAT(error_of<ShapeError>([] { nn::xavier_uniform()({5}, {}); }),
             contains("xavier_uniform: a parameter of shape (5,) has no fans"));
}
