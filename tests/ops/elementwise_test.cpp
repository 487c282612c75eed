#include <reel/reel.h>

#include <cmath>
#include <limits>

#include "ops/bad_input.h"
#include "ops/numbers.h"

// Behaviour that the op table cannot express: special values, the ends of ranges, derivatives at kinks, dtypes.

namespace reel_test {

using namespace reel;

namespace {

constexpr int least = std::numeric_limits<int>::min();

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

struct SpecialFunction {
  std::string name;
  UnaryOp op;
  double (*formula)(double);
};

double inverse_error_at_ends(double y) {
  return std::abs(y) == 1 ? std::copysign(infinity, y) : std::abs(y) < 1 ? y : nan;  // at 0 and beyond
}

const SpecialFunction functions[] = {
    {"abs", abs, [](double x) { return std::abs(x); }},
    {"sign", sign, [](double x) { return std::isnan(x) ? x
                                         : x > 0       ? 1.0
                                         : x < 0       ? -1.0
                                                       : 0.0; }},
    {"reciprocal", reciprocal, [](double x) { return 1 / x; }},
    {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }},
    {"floor", floor, [](double x) { return std::floor(x); }},
    {"ceil", ceil, [](double x) { return std::ceil(x); }},
    {"round", round, [](double x) { return std::nearbyint(x); }},
    {"trunc", trunc, [](double x) { return std::trunc(x); }},
    {"expm1", expm1, [](double x) { return std::expm1(x); }},
    {"log1p", log1p, [](double x) { return std::log1p(x); }},
    {"log2", log2, [](double x) { return std::log2(x); }},
    {"sin", sin, [](double x) { return std::sin(x); }},
    {"cos", cos, [](double x) { return std::cos(x); }},
    {"tan", tan, [](double x) { return std::tan(x); }},
    {"asin", asin, [](double x) { return std::asin(x); }},
    {"acos", acos, [](double x) { return std::acos(x); }},
    {"atan", atan, [](double x) { return std::atan(x); }},
    {"sinh", sinh, [](double x) { return std::sinh(x); }},
    {"cosh", cosh, [](double x) { return std::cosh(x); }},
    {"erf", erf, [](double x) { return std::erf(x); }},
    {"lgamma", lgamma, [](double x) { return std::lgamma(x); }},
};

const UnaryOp roundings[] = {floor, ceil, round, trunc};

// One of the least numbers above 0 of a dtype.
double denormal(DType dtype) { return dtype == f32 ? 0x1p-140 : 0x1p-1060; }

}  // namespace

TEST_CASE("new functions of special values give what the C library gives") {
  for (DType dtype : {f32, f64})
    for (const SpecialFunction& function : functions) {
      // Leading ones put each value into a full register and into the remainder.
      std::vector<double> x(15, 1.0);
      for (double special : {nan,
                             infinity,
                             -infinity,
                             0.0,
                             -0.0,
                             1.0,
                             -1.0,
                             2.0,
                             -2.0,
                             0.5,
                             -0.5,
                             1.5,
                             2.5,
                             -2.5,
                             1e30,
                             -1e30,
                             denormal(dtype),
                             -denormal(dtype),
                             1e5,
                             -1e5,
                             1000.0,
                             -1000.0})
        x.push_back(special);
      Tensor input = to(doubles(x), dtype);
      x = values_of(input);
      std::vector<double> y = values_of(function.op(input));
      for (std::size_t i = 15; i < x.size(); ++i) {
        double expected = function.formula(x[i]);
        double most = dtype == f32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
        if (std::abs(expected) > most) expected = std::copysign(infinity, expected);
        CAPTURE(function.name, name_of(dtype), x[i], y[i], expected);
        if (expected == 0 || !std::isfinite(expected))
          CHECK(same(y[i], expected));
        else
          CHECK(std::abs(y[i] - expected) <= 5 * last_place(dtype) * std::abs(expected) + denormal(dtype) * 0x1p-9);
      }
    }
}

TEST_CASE("erfinv and digamma at their ends and poles") {
  for (DType dtype : {f32, f64}) {
    std::vector<double> y{1, -1, 0.0, -0.0, 1.5, -2, nan, infinity};
    std::vector<double> x = values_of(erfinv(to(doubles(y), dtype)));
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(same(x[i], inverse_error_at_ends(y[i])));
    std::vector<double> psi = values_of(digamma(to(doubles({0.0, -0.0, -1, -7, infinity, nan, 1, -0.5}), dtype)));
    CHECK(psi[0] == -infinity);
    CHECK(psi[1] == infinity);
    for (std::size_t i : {2, 3, 5}) CHECK(std::isnan(psi[i]));
    CHECK(psi[4] == infinity);
    CHECK(psi[6] == Approx(-0.5772156649015329).epsilon(8 * last_place(dtype)));
    CHECK(psi[7] == Approx(0.03648997397857652).epsilon(100 * last_place(dtype)));
  }
  // The inverse of the inverse, up to where 1 − y is one unit in the last place.
  for (double x : {1e-300, 1e-8, 0.3, 1.0, 2.0, 3.0, 4.2, 5.0}) {
    double y = std::erf(x), found = erfinv(doubles({y})).item();
    CAPTURE(x, found);
    CHECK(std::abs(std::erfc(found) - std::erfc(x)) <= 0x1p-53 + 4 * last_place(f64) * std::erfc(x));
    CHECK(std::abs(std::erf(found) - y) <= 2 * last_place(f64) * y);
  }
}

TEST_CASE("polygamma has its known values and poles") {
  constexpr double pi = 3.141592653589793;
  auto value = [](int order, double x) { return polygamma(order, doubles({x})).item(); };
  CHECK(value(0, 1) == digamma(doubles({1})).item());
  CHECK(value(1, 1) == Approx(pi * pi / 6).epsilon(1e-14));
  CHECK(value(1, 0.5) == Approx(pi * pi / 2).epsilon(1e-14));
  CHECK(value(1, -0.5) == Approx(pi * pi / 2 + 4).epsilon(1e-14));
  CHECK(value(1, -1e6 - 0.5) == Approx(pi * pi).epsilon(1e-5));
  CHECK(value(2, 1) == Approx(-2.4041138063191886).epsilon(1e-14));
  CHECK(value(3, 1) == Approx(std::pow(pi, 4) / 15).epsilon(1e-14));
  CHECK(value(2, -0.5) == Approx(-0.8287966442).epsilon(1e-8));
  CHECK(value(1, -1e-10) == Approx(1e20).epsilon(1e-14));
  CHECK(value(2, -1e-17) == Approx(2e51).epsilon(1e-14));
  for (double pole : {0.0, -1.0, -1e30}) {
    CHECK(value(1, pole) == infinity);
    CHECK(value(2, pole) == -infinity);
  }
  CHECK(value(1, infinity) == 0);
  CHECK(std::isnan(value(4, nan)));
  CHECK(polygamma(1, tensor({1, 2})).dtype() == f32);
  CHECK(polygamma(2, ones({3}, {.dtype = bf16})).dtype() == bf16);
}

TEST_CASE("sines are right for any finite angle") {
  for (double angle : {38999.5, 39000.5, 1e5, 1e10, 1e22, 3e38, -12345678.0}) {
    float single = static_cast<float>(angle);
    auto exact = static_cast<double>(single);
    CAPTURE(angle);
    CHECK(std::abs(sin(tensor({single})).item() - std::sin(exact)) <= 4 * last_place(f32));
    CHECK(std::abs(cos(tensor({single})).item() - std::cos(exact)) <= 4 * last_place(f32));
    CHECK(tan(tensor({single})).item() == Approx(std::tan(exact)).epsilon(4 * last_place(f32)));
    CHECK(std::abs(sin(doubles({angle})).item() - std::sin(angle)) <= 4 * last_place(f64));
    CHECK(tan(doubles({angle})).item() == Approx(std::tan(angle)).epsilon(4 * last_place(f64)));
  }
  Tensor x = (arange(80'000) - 40'000) * 0.37;
  for (const Tensor& y : {sin(to(x, f32)), cos(to(x, f32))}) CHECK(max(abs(y)).item() <= 1);
}

TEST_CASE("functions of f32 over their whole range") {
  struct Range {
    SpecialFunction function;
    double low, high, ulps;
  };
  const Range ranges[] = {{{"tan", tan, [](double x) { return std::tan(x); }}, -30, 30, 4},
                          {{"sinh", sinh, [](double x) { return std::sinh(x); }}, -89.4, 89.4, 3.5},
                          {{"cosh", cosh, [](double x) { return std::cosh(x); }}, -89.4, 89.4, 3.5},
                          {{"erf", erf, [](double x) { return std::erf(x); }}, -6, 6, 3.5},
                          {{"lgamma", lgamma, [](double x) { return std::lgamma(x); }}, -9.97, 40.03, 1},
                          {{"log2", log2, [](double x) { return std::log2(x); }}, 1e-3, 2e3, 3}};
  for (const Range& range : ranges) {
    Tensor x = to(to(arange(20'001), f64) * ((range.high - range.low) / 20'000) + range.low, f32);
    std::vector<double> from = values_of(x), y = values_of(range.function.op(x));
    double worst = 0, at = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
      double expected = range.function.formula(from[i]);
      if (static_cast<float>(expected) == static_cast<float>(y[i])) continue;
      double error = std::abs(y[i] - expected) / std::abs(expected) / last_place(f32);
      if (error <= worst) continue;
      worst = error;
      at = from[i];
    }
    CAPTURE(range.function.name, at);
    CHECK(worst <= range.ulps);
  }
  for (int power = -149; power < 128; ++power) CHECK(log2(tensor({std::ldexp(1.f, power)})).item() == power);
}

TEST_CASE("rounding goes to the even neighbour and stays what it is for integers") {
  CHECK(values_of(round(doubles({0.5, 1.5, 2.5, -0.5, -1.5, 2.4999}))) == std::vector<double>{0, 2, 2, -0.0, -2, 2});
  Tensor integers = tensor({3, -4, least});
  for (UnaryOp op : roundings) CHECK(op(integers).to_vector<int>() == std::vector<int>{3, -4, least});
  CHECK(abs(integers).to_vector<int>() == std::vector<int>{3, 4, least});
  CHECK(sign(integers).to_vector<int>() == std::vector<int>{1, -1, -1});
  CHECK(values_of(sign(to(tensor({0, 200}), u8))) == std::vector<double>{0, 1});
}

TEST_CASE("remainders have the divisor's sign and quotients are rounded down") {
  const std::vector<double> a{7, -7, 7, -7, 0.0, -0.0, 5, -5, 1, -1, 5.5, nan, infinity, 1e30, -1e-30};
  const std::vector<double> b{3, 3, -3, -3, 3, 3, infinity, infinity, 0, 0, 0.5, 1, 2, 7, 1};
  const std::vector<double> rest{1, 2, -2, -1, 0, 0, 5, infinity, nan, nan, 0, nan, nan, std::fmod(1e30, 7), 1};
  const std::vector<double> whole{2, -3, -3, 2, 0, -0.0, 0, -1, infinity, -infinity, 11, nan, nan, 0, -1};
  for (DType dtype : {f32, f64}) {
    Tensor x = to(doubles(a), dtype), y = to(doubles(b), dtype);
    std::vector<double> found_rest = values_of(x % y), found_whole = values_of(floor_divide(x, y));
    for (std::size_t i = 0; i < a.size(); ++i) {
      CAPTURE(name_of(dtype), a[i], b[i], found_rest[i], found_whole[i]);
      if (a[i] == 1e30) {
        double exact = values_of(x)[i];
        CHECK(found_rest[i] == std::fmod(exact, 7));
        CHECK(found_whole[i] == Approx(exact / 7));
      } else {
        CHECK(same(found_rest[i], rest[i]));
        CHECK(same(found_whole[i], whole[i]));
      }
    }
  }
}

TEST_CASE("integer division by zero gives 0, and the least integer by -1 wraps around") {
  Tensor a = tensor({7, -7, 7, -7, 5, least, least}), b = tensor({3, 3, -3, -3, 0, -1, 0});
  CHECK(floor_divide(a, b).to_vector<int>() == std::vector<int>{2, -3, -3, 2, 0, least, 0});
  CHECK((a % b).to_vector<int>() == std::vector<int>{1, 2, -2, -1, 0, 0, 0});
  CHECK(floor_divide(tensor({std::numeric_limits<std::int64_t>::min()}), -1).item<std::int64_t>() ==
        std::numeric_limits<std::int64_t>::min());
  Tensor bytes = to(tensor({200, 7}), u8), divisors = to(tensor({7, 0}), u8);
  CHECK(values_of(floor_divide(bytes, divisors)) == std::vector<double>{28, 0});
  CHECK(values_of(bytes % divisors) == std::vector<double>{4, 0});
  CHECK((tensor({7}) % 2.5).dtype() == f32);
}

TEST_CASE("the larger and the smaller of two numbers are NaN if one is") {
  Tensor a = doubles({1, nan, 1, infinity, -infinity}), b = doubles({2, 1, nan, 1, 1});
  std::vector<double> larger = values_of(maximum(a, b)), smaller = values_of(minimum(a, b));
  CHECK(larger[0] == 2);
  CHECK(smaller[0] == 1);
  for (std::size_t i : {1, 2}) CHECK((std::isnan(larger[i]) && std::isnan(smaller[i])));
  CHECK(larger[3] == infinity);
  CHECK(smaller[4] == -infinity);
  CHECK(maximum(tensor({3, -3}), 0).to_vector<int>() == std::vector<int>{3, 0});
  CHECK(values_of(maximum(tensor({true, false}), false)) == std::vector<double>{1, 0});
}

TEST_CASE("the angle of a point at zeros and infinities is the C library's") {
  const double ends[] = {0.0, -0.0, 1, -1, infinity, -infinity, nan, 1e-40};
  for (double a : ends)
    for (double b : ends)
      for (DType dtype : {f32, f64}) {
        double found = atan2(to(doubles({a}), dtype), to(doubles({b}), dtype)).item();
        double expected = std::atan2(a, b);
        CAPTURE(a, b, found, expected);
        if (expected == 0 || std::isnan(expected))
          CHECK(same(found, expected));
        else
          CHECK(std::abs(found - expected) <= 4 * last_place(dtype) * std::abs(expected) + 1e-44);
      }
}

TEST_CASE("powers of f32 have the C library's corner cases") {
  const double ends[] = {0.0, -0.0, 1, -1, 2, -2, 3, 0.5, -0.5, infinity, -infinity, nan, 1e30, 1e-30};
  std::vector<double> a, b;
  for (double base : ends)
    for (double power : ends) {
      a.push_back(base);
      b.push_back(power);
    }
  Tensor bases = to(doubles(a), f32), powers = to(doubles(b), f32);
  std::vector<float> found = pow(bases, powers).to_vector<float>(), x = bases.to_vector<float>(),
                     y = powers.to_vector<float>();
  for (std::size_t i = 0; i < found.size(); ++i) {
    float expected = std::pow(x[i], y[i]);
    float alone = pow(tensor({x[i]}), static_cast<double>(y[i])).item<float>();
    CAPTURE(x[i], y[i], found[i], alone, expected);
    for (float one : {found[i], alone})
      CHECK((same(one, expected) || std::abs(one - expected) <= 0x1p-22f * std::abs(expected)));
  }
}

TEST_CASE("powers of f32 are wrong by hardly more than half a unit of their last place") {
  constexpr std::uint64_t first_seed = 1711;
  CAPTURE(first_seed);
  manual_seed(first_seed);
  for (double spread : {1.0, 10.0}) {
    std::vector<float> x = exp(randn({1 << 14}) * 10).to_vector<float>(),
                       y = (randn({1 << 14}) * spread).to_vector<float>();
    std::vector<float> found = pow(tensor(x), tensor(y)).to_vector<float>();
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      double expected = std::pow(static_cast<double>(x[i]), static_cast<double>(y[i]));
      if (expected < 0x1p-126 || expected > 0x1.fffffep127) continue;
      double unit = std::ldexp(1.0, std::ilogb(expected) - 23);
      worst = std::max(worst, std::abs(static_cast<double>(found[i]) - expected) / unit);
    }
    CHECK(worst > 0.4);
    CHECK(worst < 0.501);
  }
}

TEST_CASE("logaddexp neither overflows nor meets infinity minus infinity") {
  const std::vector<double> a{1000, -1000, infinity, -infinity, -infinity, infinity, nan, 0};
  const std::vector<double> b{1000, -1000, infinity, -infinity, 5, -infinity, 1, 0};
  const std::vector<double> expected{1000 + std::log(2), -1000 + std::log(2), infinity, -infinity, 5, infinity, nan,
                                     std::log(2)};
  for (DType dtype : {f32, f64}) {
    std::vector<double> found = values_of(logaddexp(to(doubles(a), dtype), to(doubles(b), dtype)));
    for (std::size_t i = 0; i < a.size(); ++i) {
      CAPTURE(a[i], b[i]);
      CHECK((same(found[i], expected[i]) || found[i] == Approx(expected[i]).epsilon(4 * last_place(dtype))));
    }
  }
  Tensor x = doubles({-infinity, infinity, 3, -infinity}), y = doubles({-infinity, infinity, 3, 0});
  Tape tape;
  tape.watch(x);
  tape.watch(y);
  auto [dx, dy] = tape.gradient(sum(logaddexp(x, y)), x, y);
  CHECK(values_of(dx) == std::vector<double>{0, 0.5, 0.5, 0});
  CHECK(values_of(dy) == std::vector<double>{0, 0.5, 0.5, 1});
}

TEST_CASE("derivatives of new functions at their kinks are the documented ones") {
  Tensor x = doubles({-1, 0, 1, 2, nan}), y = doubles({-1, 1, 1, 1, 1});
  Tape tape({.persistent = true});
  tape.watch(x);
  tape.watch(y);
  auto by_x = [&](const Tensor& z) { return values_of(tape.gradient(sum(z), x)); };
  auto by_y = [&](const Tensor& z) { return values_of(tape.gradient(sum(z), y)); };
  auto first_four = [](std::vector<double> values) {
    values.pop_back();
    return values;
  };
  using V = std::vector<double>;
  CHECK(first_four(by_x(abs(x))) == V{-1, 0, 1, 1});
  CHECK(by_x(sign(x)) == V{0, 0, 0, 0, 0});
  for (UnaryOp op : roundings) CHECK(by_x(op(x)) == V{0, 0, 0, 0, 0});
  CHECK(by_x(clamp(x, 0, 1)) == V{0, 1, 1, 0, 0});
  CHECK(by_x(clamp(x, 1, 0)) == V{0, 0, 0, 0, 0});
  CHECK(by_y(clamp(x, y)) == V{0, 1, 0, 0, 0});
  CHECK(by_y(clamp(x, -infinity, y)) == V{0, 0, 0, 1, 0});
  CHECK(by_y(clamp(x, 2, y)) == V{1, 1, 1, 1, 1});
  CHECK(by_x(maximum(x, y)) == V{0.5, 0, 0.5, 1, 1});
  CHECK(by_y(maximum(x, y)) == V{0.5, 1, 0.5, 0, 1});
  CHECK(by_x(minimum(x, y)) == V{0.5, 1, 0.5, 0, 1});
  CHECK(by_y(minimum(x, y)) == V{0.5, 0, 0.5, 1, 1});
  CHECK(by_x(x % y) == V{1, 1, 1, 1, 1});
  CHECK(first_four(by_y(x % y)) == V{-1, 0, -1, -2});
  CHECK(by_x(floor_divide(x, y)) == V{0, 0, 0, 0, 0});
  CHECK(by_y(floor_divide(x, y)) == V{0, 0, 0, 0, 0});
}

TEST_CASE("clamp takes numbers and tensors, and infinities are no bounds") {
  Tensor x = tensor({-5, 0, 7});
  CHECK(clamp(x, 0).to_vector<int>() == std::vector<int>{0, 0, 7});
  CHECK(clamp(x, -infinity, 3).to_vector<int>() == std::vector<int>{-5, 0, 3});
  CHECK(clamp(x, -infinity).to_vector<int>() == std::vector<int>{-5, 0, 7});
  CHECK(clamp(x, tensor({-1, 1, 1}), 5).to_vector<int>() == std::vector<int>{-1, 1, 5});
  CHECK(clamp(x, 0.5).dtype() == f32);
  CHECK(clamp(to(x, i64), -infinity).to_vector<std::int64_t>() == std::vector<std::int64_t>{-5, 0, 7});
  CHECK(values_of(clamp(to(tensor({1, 255}), u8), 2)) == std::vector<double>{2, 255});
  CHECK(clamp(to(x, bf16), -1, 1).dtype() == bf16);
  CHECK(values_of(clamp(doubles({-infinity, infinity}), -infinity, infinity)) ==
        std::vector<double>{-infinity, infinity});
  CHECK(std::isnan(clamp(doubles({nan}), 0, 1).item()));
  CHECK(std::isnan(clamp(doubles({0}), nan, 1).item()));
}

TEST_CASE("tests of numbers and logic take every dtype") {
  Tensor x = doubles({nan, infinity, -infinity, 0, 1});
  for (DType dtype : floating_dtypes) {
    Tensor y = to(x, dtype);
    CHECK(values_of(isnan(y)) == std::vector<double>{1, 0, 0, 0, 0});
    CHECK(values_of(isinf(y)) == std::vector<double>{0, 1, 1, 0, 0});
    CHECK(values_of(isfinite(y)) == std::vector<double>{0, 0, 0, 1, 1});
    CHECK(values_of(!y) == std::vector<double>{0, 0, 0, 1, 0});
    CHECK(values_of(logical_and(y, y)) == std::vector<double>{1, 1, 1, 0, 1});
  }
  Tensor flags = tensor({true, false});
  for (const Tensor& y : {isnan(flags), isinf(flags), isfinite(flags), !flags, logical_or(flags, 0.5)})
    CHECK(y.dtype() == boolean);
  CHECK(values_of(logical_xor(tensor({1, 2, 0}), tensor({5, 0, 0}))) == std::vector<double>{0, 1, 0});
  CHECK(values_of(logical_or(flags, 0)) == std::vector<double>{1, 0});
}

TEST_CASE("lerp is exact at both ends") {
  Tensor a = tensor({1e8f, 0.1f}), b = tensor({1.f, -0.3f});
  CHECK(same_bits(lerp(a, b, 0), a));
  CHECK(same_bits(lerp(a, b, 1), b));
  CHECK(lerp(tensor({3e38f}), -3e38f, 0).item() == 3e38f);
  CHECK(lerp(tensor({1.0f}), INFINITY, 0).item() == 1);
  CHECK(lerp(tensor({INFINITY}), 1.0f, 1).item() == 1);
  CHECK(lerp(tensor({0}), tensor({10}), 0.25).item() == 2.5);
  CHECK(lerp(ones({2}, {.dtype = f16}), zeros({2}, {.dtype = f16}), 0.5).dtype() == f16);
}

TEST_CASE("large inputs give what small ones give, broadcast or not, on any number of threads") {
  constexpr std::int64_t rows = 300, columns = 500;
  Tensor x = randn({rows, columns}), line = randn({columns}), column = randn({rows, 1});
  Tensor narrow = randn({rows * columns / 4, 4}), four = randn({4}), single = randn({rows * columns / 4, 1});
  using Joined = Tensor (*)(const Tensor& a, const Tensor& b);
  const Joined ops[] = {[](const Tensor& a, const Tensor& b) { return a + b; },
                        [](const Tensor& a, const Tensor& b) { return atan2(a, b); },
                        [](const Tensor& a, const Tensor& b) { return where(a < b, a, b); },
                        [](const Tensor& a, const Tensor& b) { return clamp(a, b, b + 1); }};
  for (Joined op : ops)
    for (const auto& [a, b] : {std::pair{x, line},
                               {x, column},
                               {transpose(x), reshape(line, {columns, 1})},
                               {narrow, four},
                               {narrow, single},
                               {x, transpose(reshape(x, {columns, rows}))}}) {
      Tensor whole = op(a, b), other = expand(b, a.shape());
      std::int64_t last = a.size(0) - 1;
      for (std::int64_t row : {std::int64_t{0}, last / 3, last})
        CHECK(same_bits(copy(select(whole, 0, row)), op(copy(select(a, 0, row)), copy(select(other, 0, row)))));
      Tensor half = op(to(a, bf16), to(b, bf16));
      CHECK(same_bits(copy(select(half, 0, last)),
                      op(copy(select(to(a, bf16), 0, last)), copy(select(to(other, bf16), 0, last)))));
    }
}

TEST_CASE("every elementwise op names a bad operand") {
  const Tensor undefined, matrix = zeros({2, 3}), vector = zeros({4}), flags = tensor({true});
  const std::string rest = ": an operand is an undefined tensor";
  struct Named {
    std::string name;
    UnaryOp op;
  };
  const Named unaries[] = {{"abs", abs},     {"sign", sign},     {"floor", floor},       {"ceil", ceil},
                           {"round", round}, {"trunc", trunc},   {"square", square},     {"reciprocal", reciprocal},
                           {"rsqrt", rsqrt}, {"sqrt", sqrt},     {"expm1", expm1},       {"log", log},
                           {"log1p", log1p}, {"log2", log2},     {"sin", sin},           {"cos", cos},
                           {"tan", tan},     {"asin", asin},     {"acos", acos},         {"atan", atan},
                           {"sinh", sinh},   {"cosh", cosh},     {"tanh", tanh},         {"sigmoid", sigmoid},
                           {"erf", erf},     {"erfinv", erfinv}, {"lgamma", lgamma},     {"digamma", digamma},
                           {"isnan", isnan}, {"isinf", isinf},   {"isfinite", isfinite}, {"logical_not", logical_not}};
  for (const Named& named : unaries) {
    all_fail<Error>({Bad(named.name + rest, [&] { named.op(undefined); })});
    all_fail<DTypeError>({Bad(named.name + ": takes a tensor here, not the number 2", [&] { named.op(2); })});
  }
  for (const Named& named : unaries) {
    if (named.name == "reciprocal") break;
    all_fail<DTypeError>({Bad(named.name + ": takes numbers, not (1,) bool", [&] { named.op(flags); })});
  }
  struct Pair {
    std::string name;
    BinaryOp op;
  };
  const Pair binaries[] = {{"sub", sub},
                           {"mul", mul},
                           {"floor_divide", floor_divide},
                           {"mod", mod},
                           {"maximum", maximum},
                           {"minimum", minimum},
                           {"atan2", atan2},
                           {"logaddexp", logaddexp},
                           {"equal", equal},
                           {"not_equal", not_equal},
                           {"less", less},
                           {"less_equal", less_equal},
                           {"greater", greater},
                           {"greater_equal", greater_equal},
                           {"logical_and", logical_and},
                           {"logical_or", logical_or},
                           {"logical_xor", logical_xor}};
  for (const Pair& named : binaries) {
    all_fail<Error>({Bad(named.name + rest, [&] { named.op(undefined, matrix); }),
                     Bad(named.name + rest, [&] { named.op(1, undefined); })});
    all_fail<ShapeError>(
        {Bad(named.name + ": shapes do not broadcast: a (2, 3), b (4,)", [&] { named.op(matrix, vector); })});
  }
  all_fail<DTypeError>({
      Bad("floor_divide: bools cannot be operands", [&] { floor_divide(flags, flags); }),
      Bad("mod: bools cannot be operands", [&] { flags % flags; }),
      Bad("clamp: takes numbers, not (1,) bool", [&] { clamp(flags, false, true); }),
      Bad("clamp: takes a tensor here, not the number 2", [&] { clamp(2, 0, 1); }),
      Bad("clamp: the number -1 does not fit u8", [&] { clamp(zeros({1}, {.dtype = u8}), -1); }),
      Bad("polygamma: takes a tensor here, not the number 2", [&] { polygamma(1, 2); }),
  });
  all_fail<Error>({
      Bad("clamp" + rest, [&] { clamp(undefined, 0, 1); }),
      Bad("clamp" + rest, [&] { clamp(matrix, undefined); }),
      Bad("lerp" + rest, [&] { lerp(matrix, undefined, 0.5); }),
      Bad("lerp" + rest, [&] { lerp(matrix, matrix, undefined); }),
      Bad("polygamma" + rest, [&] { polygamma(1, undefined); }),
      Bad("polygamma: the order -1 lies outside [0, 170]", [&] { polygamma(-1, matrix); }),
      Bad("polygamma: the order 171 lies outside [0, 170]", [&] { polygamma(171, matrix); }),
  });
  all_fail<ShapeError>({
      Bad("clamp: shapes do not broadcast: x (2, 3), low (4,), high ()", [&] { clamp(matrix, vector); }),
      Bad("lerp: shapes do not broadcast: a (2, 3), b (2, 3), weight (4,)", [&] { lerp(matrix, matrix, vector); }),
  });
}

TEST_CASE("the derivatives of atan2 are 0 at the origin, and right where squares overflow or vanish") {
  for (DType dtype : {f32, f64, bf16, f16}) {
    INFO(name_of(dtype));
    Tensor a = to(doubles({0, -0.0, 0, 3}), dtype), b = to(doubles({0}), dtype),
           seed = to(doubles({1, 1, 1, 1}), dtype);
    Tape outer;
    outer.watch(a);
    outer.watch(b);
    Tensor first_a, first_b;
    {
      Tape tape;
      std::vector<Tensor> found = tape.gradient(atan2(a, b), {a, b}, {.seed = seed});
      first_a = found[0];
      first_b = found[1];
    }
    CHECK(to(first_a, f64).to_vector<double>() == std::vector<double>{0, 0, 0, 0});
    CHECK(std::abs(to(first_b, f64).item() + 1.0 / 3) < 0.002);
    std::vector<Tensor> second = outer.gradient(sum(first_a) + first_b, {a, b});
    std::vector<double> by_a = to(second[0], f64).to_vector<double>();
    CHECK(by_a[0] == 0);
    CHECK(by_a[1] == 0);
    // ∂(−a / (a² + b²)) / ∂a = (a² − b²) / (a² + b²)²
    CHECK(std::abs(by_a[3] - 1.0 / 9) < 0.002);
    CHECK(std::abs(to(second[1], f64).item() - 1.0 / 9) < 0.002);
  }
  struct Extreme {
    DType dtype;
    double size, tolerance;
  };
  for (const Extreme& extreme : {Extreme{f32, 1e-30, 1e-6},
                                 {f32, 1e30, 1e-6},
                                 {f64, 1e-300, 1e-15},
                                 {f64, 1e300, 1e-15},
                                 {f16, 1024, 1e-3},
                                 {bf16, 0x1p-100, 1e-2}}) {
    INFO(name_of(extreme.dtype) << " " << extreme.size);
    Tensor a = to(doubles({extreme.size}), extreme.dtype), b = to(doubles({extreme.size}), extreme.dtype);
    Tape tape;
    tape.watch(a);
    tape.watch(b);
    std::vector<Tensor> found = tape.gradient(atan2(a, b), {a, b});
    CHECK(std::abs(to(found[0], f64).item() * extreme.size - 0.5) < extreme.tolerance);
    CHECK(std::abs(to(found[1], f64).item() * extreme.size + 0.5) < extreme.tolerance);
  }
}

}  // namespace reel_test
