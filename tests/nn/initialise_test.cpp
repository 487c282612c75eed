#include <reel/nn.h>
#include <reel/ops.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "catch.h"

using namespace reel;
using namespace reel_test;

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

TEST_CASE("he initialisers take the fan and the gain that they are given") {
  manual_seed(1);
  Shape shape{100, 300};
  check_uniform(nn::he_uniform(2, nn::Fan::out)(shape, {}), 2 * std::sqrt(3.0 / 300));
  check_normal(nn::he_normal(3, nn::Fan::average)(shape, {}), 0, 3 / std::sqrt(200.0));
  check_normal(nn::he_normal(1, nn::Fan::out)({64, 20, 3, 5}, {}), 0, 1 / std::sqrt(64.0 * 15));
}

TEST_CASE("gains are those of the nonlinearities") {
  CHECK(nn::gain(nn::Nonlinearity::linear) == 1);
  CHECK(nn::gain(nn::Nonlinearity::sigmoid) == 1);
  CHECK(nn::gain(nn::Nonlinearity::tanh) == Approx(5.0 / 3));
  CHECK(nn::gain(nn::Nonlinearity::relu) == Approx(std::sqrt(2.0)));
  CHECK(nn::gain(nn::Nonlinearity::leaky_relu, 0) == Approx(std::sqrt(2.0)));
  CHECK(nn::gain(nn::Nonlinearity::leaky_relu, 1) == Approx(1));
  CHECK(nn::gain(nn::Nonlinearity::selu) == 0.75);
  // A linear layer and relu preserve the second moment.
  manual_seed(2);
  Tensor x = randn({200, 500});
  Tensor weight = nn::he_normal(nn::gain(nn::Nonlinearity::relu))({500, 500}, {});
  CHECK(mean(square(relu(matmul(x, weight)))).item() == Approx(1).epsilon(0.03));
}

TEST_CASE("truncated_normal keeps within its ends and has the moments of its density") {
  manual_seed(3);
  Spread spread = spread_of(nn::truncated_normal(5, 0.5)({300, 400}, {}));
  CHECK(spread.low >= 4);
  CHECK(spread.low < 4.01);
  CHECK(spread.high <= 6);
  CHECK(spread.high > 5.99);
  CHECK(spread.mean == Approx(5).margin(0.005));
  // 1 − 4 φ(2) / (Φ(2) − Φ(−2)) = 0.7737 is the variance.
  CHECK(spread.deviation == Approx(0.5 * std::sqrt(0.77374)).epsilon(0.01));

  Spread tail = spread_of(nn::truncated_normal(0, 2, 3, 4)({300, 400}, {.dtype = f64}));
  CHECK(tail.low >= 6);
  CHECK(tail.high <= 8);
  // 2 (φ(3) − φ(4)) / (Φ(4) − Φ(3)).
  CHECK(tail.mean == Approx(6.5210).epsilon(0.001));
}

TEST_CASE("truncated_normal goes as far into the tails as its ends do") {
  manual_seed(8);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  // With r = φ/(1 − Φ) from its continued fraction the mean beyond a is r, and the variance 1 + a r − r².
  for (double a : {4.0, 9.0, 40.0}) {
    double below = 0;
    for (int k = 200; k > 0; --k) below = k / (a + below);
    double r = a + below;
    for (double sign : {1.0, -1.0}) {
      auto [low, high] = sign > 0 ? std::pair{a, infinity} : std::pair{-infinity, -a};
      Spread spread = spread_of(nn::truncated_normal(1, 2, low, high)({300, 400}, {.dtype = f64}));
      CHECK((spread.mean - 1) / 2 * sign == Approx(r).epsilon(0.002 / a));
      CHECK(spread.deviation / 2 == Approx(std::sqrt(1 + a * r - r * r)).epsilon(0.02));
      CHECK((sign > 0 ? spread.low : -spread.high) >= sign + 2 * a);
    }
  }
  Spread window = spread_of(nn::truncated_normal(0, 1, 20, 20.01)({300, 400}, {.dtype = f64}));
  CHECK(window.low >= 20);
  CHECK(window.high <= 20.01);
  // Between 20 and 20.01 the density is all but e^(−20 x).
  CHECK(window.mean == Approx(20 + 0.05 - 0.01 / std::expm1(0.2)).epsilon(1e-5));
  CHECK(nn::truncated_normal(0, 1, 9, 10)({0}, {}).numel() == 0);
  Spread far = spread_of(nn::truncated_normal(0, 1, 1e200, 2e200)({10}, {.dtype = f64}));
  CHECK(far.low == 1e200);
  CHECK(far.high == 1e200);
}

TEST_CASE("orthogonal gives orthonormal columns, or rows if those are fewer, times the gain") {
  manual_seed(4);
  auto check_identity = [](const Tensor& product, double scale) {
    CHECK(max(abs(product - eye(product.size(0), {.dtype = product.dtype()}) * scale)).item() < 1e-5);
  };
  Tensor tall = nn::orthogonal(2)({50, 20}, {});
  check_identity(matmul(transpose(tall), tall), 4);
  Tensor wide = nn::orthogonal()({20, 50}, {.dtype = f64});
  check_identity(matmul(wide, transpose(wide)), 1);
  Tensor square_one = nn::orthogonal()({30, 30}, {});
  check_identity(matmul(square_one, transpose(square_one)), 1);
  Tensor filters = flatten(nn::orthogonal(3)({8, 4, 3, 3}, {}), 1);
  check_identity(matmul(filters, transpose(filters)), 9);
  CHECK(nn::orthogonal()({6, 4}, {.dtype = bf16}).dtype() == bf16);
  CHECK(nn::orthogonal()({0, 4}, {}).numel() == 0);
}

TEST_CASE("orthogonal prefers no direction") {
  manual_seed(5);
  double trace = 0;
  for (int i = 0; i < 400; ++i) trace += sum(diag(nn::orthogonal()({3, 3}, {}))).item() / 400;
  // Its expectation is 0 and its variance 1; QR without the correction of signs gives −1.6.
  CHECK(std::abs(trace) < 0.2);
}

TEST_CASE("identity makes layers that hand their input on") {
  Tensor x = randn({3, 4});
  CHECK(matmul(x, nn::identity(2)({4, 4}, {})).to_vector<float>() == (x * 2).to_vector<float>());
  Tensor wide = nn::identity()({2, 3}, {});
  CHECK(wide.to_vector<float>() == std::vector<float>{1, 0, 0, 0, 1, 0});
  CHECK(nn::identity()({3, 2}, {.dtype = f64}).to_vector<double>() == std::vector<double>{1, 0, 0, 1, 0, 0});

  Tensor images = randn({2, 4, 5, 6});
  Tensor same = conv2d(images, nn::identity()({4, 4, 3, 5}, {}), {.padding = {1, 2}});
  CHECK(same.to_vector<float>() == images.to_vector<float>());
  Tensor grouped = conv2d(images, nn::identity(1, 2)({4, 2, 3, 3}, {}), {.padding = 1, .groups = 2});
  CHECK(grouped.to_vector<float>() == images.to_vector<float>());
  Tensor signals = randn({2, 4, 5});
  Tensor fewer = conv1d(signals, nn::identity()({3, 4, 1}, {}));
  CHECK(fewer.to_vector<float>() == slice(signals, 1, 0, 3).to_vector<float>());
}

TEST_CASE("sparse leaves as many inputs of each output as asked") {
  manual_seed(6);
  Tensor weight = nn::sparse(0.75, 2)({101, 200}, {});
  std::vector<std::int64_t> left = count_nonzero(weight, 0).to_vector<std::int64_t>();
  CHECK(std::all_of(left.begin(), left.end(), [](std::int64_t count) { return count == 101 - 76; }));
  check_normal(masked_select(weight, weight != 0), 0, 2);
  CHECK(count_nonzero(nn::sparse(1)({5, 4}, {})).item() == 0);
  CHECK(count_nonzero(nn::sparse(0)({5, 4}, {})).item() == 20);
  // Different inputs for each.
  CHECK(min(count_nonzero(weight, 1)).item() > 20);
}

TEST_CASE("initialisers draw in the dtype and from the generator they are given") {
  Generator first(7), second(7);
  Tensor a = nn::normal()({5}, {.dtype = f64, .generator = &first});
  Tensor b = nn::normal()({5}, {.dtype = f64, .generator = &second});
  CHECK(a.dtype() == f64);
  CHECK(a.to_vector<double>() == b.to_vector<double>());
  CHECK(nn::constant(1)({2}, {.dtype = bf16}).dtype() == bf16);
  for (const nn::Initialiser& initialiser :
       {nn::uniform(0, 1), nn::truncated_normal(), nn::xavier_uniform(), nn::xavier_normal(), nn::he_uniform(),
        nn::he_normal(), nn::orthogonal(), nn::sparse(0.5)}) {
    Generator one(7), same(7);
    Tensor drawn = initialiser({6, 5}, {.dtype = f64, .generator = &one});
    CHECK(drawn.dtype() == f64);
    CHECK(drawn.to_vector<double>() == initialiser({6, 5}, {.dtype = f64, .generator = &same}).to_vector<double>());
    CHECK(drawn.to_vector<double>() != initialiser({6, 5}, {.dtype = f64, .generator = &same}).to_vector<double>());
    CHECK(initialiser({6, 5}, {.dtype = f16}).dtype() == f16);
  }
}

TEST_CASE("a vector has no fans") {
  CHECK_THAT(error_of<ShapeError>([] { nn::xavier_uniform()({5}, {}); }),
             contains("xavier_uniform: a parameter of shape (5,) has no fans"));
  for (const nn::Initialiser& initialiser :
       {nn::xavier_normal(), nn::he_uniform(), nn::he_normal(), nn::orthogonal(), nn::identity()})
    CHECK_THAT(error_of<ShapeError>([&] { initialiser({5}, {}); }), contains("a parameter of shape (5,) has no fans"));
}

TEST_CASE("initialisers refuse what makes no sense") {
  int line = __LINE__ + 1;
  CHECK(error_of<Error>([] { nn::truncated_normal(0, 1, 2, 2); }) ==
        "truncated_normal: low 2 is not below high 2; at " + to_string(Location{__FILE__, line}));
  CHECK_THAT(error_of<Error>([] { nn::sparse(1.5); }), contains("sparse: the sparsity 1.5 does not lie in [0, 1]"));
  CHECK_THAT(error_of<ShapeError>([] {
               nn::sparse(0.5)({2, 2, 2}, {});
             }),
             contains("a parameter of shape (2, 2, 2) is not (in, out)"));
  CHECK_THAT(error_of<ShapeError>([] {
               nn::identity(1, 3)({4, 4, 1}, {});
             }),
             contains("identity: 3 groups do not fit a parameter of shape (4, 4, 1)"));
  CHECK_THAT(error_of<ShapeError>([] { nn::identity(1, 2)({4, 4}, {}); }), contains("2 groups do not fit"));
}
