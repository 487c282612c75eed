#include <reel/reel.h>

#include <array>
#include <cmath>
#include <limits>

#include "ops/bad_input.h"
#include "ops/numbers.h"

// Cases that the op table does not reach: special points of elementary functions and of activations, the ends of their
// ranges, bits of integers, and tolerances.

namespace reel_test {

using namespace reel;

namespace {

using Run = std::function<Tensor(const Tensor&)>;

// f and its first two derivatives at single points.
struct Derivatives {
  std::vector<double> value, first, second;
};

Derivatives derivatives(const Run& f, const Tensor& x) {
  Derivatives found;
  Tape outer;
  outer.watch(x);
  Tensor slope;
  {
    Tape tape;
    tape.watch(x);
    Tensor y = f(x);
    found.value = values_of(y);
    slope = tape.gradient(sum(y), x);
  }
  found.first = values_of(slope);
  // Some slopes are constant; a sum of zeros connects them with x.
  found.second = values_of(outer.gradient(sum(slope) + sum(relu(-abs(x))), x));
  return found;
}

// A gradient that nothing records, which may be fused.
std::vector<double> gradient_of(const Run& f, const Tensor& x) {
  Tape tape;
  tape.watch(x);
  return values_of(tape.gradient(sum(f(x)), x));
}

void near(const std::vector<double>& found, const std::vector<double>& expected, double bound = 1e-13) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i, found[i], expected[i]);
    if (std::isnan(expected[i]))
      CHECK(std::isnan(found[i]));
    else if (std::isinf(expected[i]) || expected[i] == 0)
      CHECK(found[i] == expected[i]);
    else
      CHECK(std::abs(found[i] - expected[i]) <= bound * std::abs(expected[i]));
  }
}

}  // namespace

TEST_CASE("elementary functions of special and of extreme values give what the C library gives") {
  struct Function {
    std::string name;
    UnaryOp op;
    double (*formula)(double);
  };
  const Function functions[] = {
      {"exp2", exp2, [](double x) { return std::exp2(x); }},
      {"log10", log10, [](double x) { return std::log10(x); }},
      {"asinh", asinh, [](double x) { return std::asinh(x); }},
      {"acosh", acosh, [](double x) { return std::acosh(x); }},
      {"atanh", atanh, [](double x) { return std::atanh(x); }},
      {"erfc", erfc, [](double x) { return std::erfc(x); }},
  };
  for (DType dtype : {f32, f64})
    for (const Function& function : functions) {
      std::vector<double> x(15, 1.0);
      for (double special : {nan,     infinity, -infinity, 0.0,   -0.0,  1.0,  -1.0, 0.5,   -0.5, 1.5,   -2.0,
                             0x1p-30, -0x1p-30, 1e-20,     1e30,  -1e30, 5.0,  9.0,  -30.0, 26.0, 127.0, -120.0,
                             1000.0,  -1000.0,  0.99999,   1.001, 1e8,   -1e8, 3.0,  100.0, 1e6,  -1e10, 1e-300})
        x.push_back(special);
      Tensor input = to(doubles(x), dtype);
      x = values_of(input);
      std::vector<double> y = values_of(function.op(input));
      double most = dtype == f32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
      double least = dtype == f32 ? 0x1p-126 : 0x1p-1022;
      for (std::size_t i = 0; i < x.size(); ++i) {
        double expected = function.formula(x[i]);
        CAPTURE(function.name, name_of(dtype), x[i], y[i], expected);
        if (std::isnan(expected))
          CHECK(std::isnan(y[i]));
        else if (std::abs(expected) > most || std::isinf(expected))
          CHECK(y[i] == std::copysign(infinity, expected));
        else
          CHECK(std::abs(y[i] - expected) <= 6 * last_place(dtype) * std::abs(expected) + least);
      }
    }
  // Whole powers are exact.
  for (int k : {-120, -3, 0, 1, 10, 100}) {
    CHECK(exp2(full({}, k, {.dtype = f32})).item() == std::ldexp(1.0, k));
    CHECK(exp2(full({}, k, {.dtype = f64})).item() == std::ldexp(1.0, k));
  }
  for (int k : {0, 1, 5, 10}) {
    CHECK(log10(full({}, std::pow(10.0, k), {.dtype = f32})).item() == k);
    CHECK(log10(full({}, std::pow(10.0, k), {.dtype = f64})).item() == k);
  }
}

TEST_CASE("logit is accurate from 0 to 1, and its ends are clamped on request") {
  std::vector<double> x{0.0, 1.0, -0.5, 1.5, 1e-300, 0x1p-20, 0.1, 0.2499, 0.25, 0.5, 0.5 + 0x1p-40, 0.75, 1 - 0x1p-50};
  std::vector<double> expected{-infinity, infinity, nan, nan};
  for (std::size_t i = 4; i < x.size(); ++i) {
    long double p = x[i];
    expected.push_back(static_cast<double>(std::log1p((2 * p - 1) / (1 - p))));
  }
  expected[4] = std::log(1e-300);
  near(values_of(logit(doubles(x))), expected, 2e-15);
  Tensor p = doubles({0.0, 0.1, 0.3, 0.9, 1.0});
  near(values_of(logit(p, {.epsilon = 0.25})),
       {-std::log(3), -std::log(3), std::log(3.0 / 7), std::log(3), std::log(3)}, 1e-15);
  near(gradient_of([](auto& v) { return logit(v, {.epsilon = 0.25}); }, p), {0, 0, 1 / 0.21, 0, 0}, 1e-14);
  CHECK(logit(to(p, bf16), {.epsilon = 1e-6}).dtype() == bf16);
  CHECK(std::isfinite(logit(tensor({1}), {.epsilon = 1e-6}).item()));
}

TEST_CASE("Bessel functions from 0 to where they overflow") {
  struct Point {
    double x, zero, one;
  };
  // From tables of 17 digits.
  for (const Point& point : {Point{0, 1, 0},
                             {0.001, 1.000000250000015625, 0.00050000006250000260},
                             {1, 1.2660658777520084, 0.56515910399248503},
                             {8, 427.56411572180474, 399.87313678256009},
                             {10, 2815.7166284662544, 2670.9883037012542},
                             {100, 1.0737517071310738e42, 1.0683693903381625e42}})
    for (double sign : {1.0, -1.0}) {
      CAPTURE(point.x);
      CHECK(i0(tensor({sign * point.x})).item() == Approx(point.zero).epsilon(4e-15));
      CHECK(i1(tensor({sign * point.x})).item() == Approx(sign * point.one).epsilon(4e-15));
      // 10⁴² is beyond f32.
      if (point.x == 100) continue;
      Tensor narrow = to(tensor({sign * point.x}), f32);
      double moved = values_of(narrow)[0] - sign * point.x;
      CHECK(std::abs(i0(narrow).item() - point.zero - moved * sign * point.one) <= 16 * 0x1p-24 * point.zero);
    }
  // e^90 is beyond f32, and I₀(90) is not.
  CHECK(i0(tensor({90.0f})).item() == Approx(5.1392383455086495e37).epsilon(3e-6));
  for (DType dtype : {f32, f64}) {
    Tensor ends = to(doubles({infinity, -infinity, nan}), dtype);
    near(values_of(i0(ends)), {infinity, infinity, nan});
    near(values_of(i1(ends)), {infinity, -infinity, nan});
  }
  Derivatives at_zero = derivatives([](auto& x) { return i0(x); }, doubles({0}));
  near(at_zero.first, {0});
  near(at_zero.second, {0.5});
  at_zero = derivatives([](auto& x) { return i1(x); }, doubles({0}));
  near(at_zero.first, {0.5});
  near(at_zero.second, {0});
}

TEST_CASE("sinc and its derivatives are right at 0, near it, at whole numbers and far away") {
  constexpr double pi = 3.141592653589793;
  std::vector<double> x{0, -0.0, 1e-8, 0.01, 0.2499, 0.2501, -0.5, 1.25};
  std::vector<double> value{1, 1, 1, 0, 0, 0, 0, 0}, first{0, 0, 0, 0, 0, 0, 0, 0}, second(8, -pi * pi / 3);
  auto series = [](long double z) {
    long double s = 0, d = 0, dd = 0, power = 1, factorial = 1;
    for (int k = 0; k < 40; ++k) {
      long double sign = k % 2 == 0 ? 1 : -1;
      s += sign * power / factorial;
      if (k > 0) d += sign * 2 * k * power / z / factorial;
      if (k > 0) dd += sign * 2 * k * (2 * k - 1) * power / (z * z) / factorial;
      power *= z * z;
      factorial *= (2.0L * k + 2) * (2.0L * k + 3);
    }
    return std::array<long double, 3>{s, d, dd};
  };
  for (std::size_t i = 2; i < x.size(); ++i) {
    auto [s, d, dd] = series(static_cast<long double>(x[i]) * 3.14159265358979323846L);
    value[i] = static_cast<double>(s);
    first[i] = static_cast<double>(d) * pi;
    second[i] = static_cast<double>(dd) * pi * pi;
  }
  Derivatives found = derivatives([](auto& v) { return sinc(v); }, doubles(x));
  near(found.value, value, 1e-15);
  near(found.first, first, 1e-13);
  near(found.second, second, 1e-12);
  near(values_of(sinc(doubles({1, -2, 1e300}))), {0, 0, 0});
  CHECK(std::isnan(sinc(tensor({infinity})).item()));
  CHECK(std::abs(sinc(tensor({1000000.5})).item()) == Approx(1 / (pi * 1000000.5)).epsilon(1e-15));
}

TEST_CASE("fmod has the sign of the dividend, and of the least integer none overflows") {
  near(values_of(fmod(doubles({7, -7, 7, -7, infinity, 1, 5, 0.0}), doubles({3, 3, -3, -3, 2, infinity, 0, 2}))),
       {1, -1, 1, -1, nan, 1, nan, 0});
  constexpr int least = std::numeric_limits<int>::min();
  Tensor a = tensor({7, -7, 7, -7, least, least, least, 5}), b = tensor({3, 3, -3, -3, -1, 3, least, 0});
  CHECK(fmod(a, b).to_vector<int>() == std::vector<int>{1, -1, 1, -1, 0, -2, 0, 0});
  Tensor x = doubles({0, -7.5, 7.5}), y = doubles({2, 2, -2});
  near(gradient_of([&](auto& v) { return fmod(v, y); }, x), {1, 1, 1});
  near(gradient_of([&](auto& v) { return fmod(x, v); }, y), {0, 3, 3});
}

TEST_CASE("xlogy is 0 where x is, and so are its derivatives where the logarithm has none") {
  near(values_of(xlogy(doubles({0, 0, 0, 0, 0, 2, 2, -2}), doubles({0, -1, 3, infinity, nan, 0, nan, 1}))),
       {0, 0, 0, 0, nan, -infinity, nan, 0});
  Tensor x = doubles({0, 0, 0, 2}), y = doubles({0, -1, 3, 3});
  near(gradient_of([&](auto& v) { return xlogy(v, y); }, x), {0, 0, std::log(3), std::log(3)});
  near(gradient_of([&](auto& v) { return xlogy(x, v); }, y), {0, 0, 0, 2.0 / 3});
  Derivatives by_y = derivatives([&](auto& v) { return xlogy(x, v); }, y);
  near(by_y.second, {0, 0, 0, -2.0 / 9});
  CHECK(xlogy(2, tensor({1, 2})).dtype() == f32);
  CHECK(xlogy(tensor({0.0f}), 0).item() == 0);
}

TEST_CASE("nan_to_num replaces what is no number, without a gradient there") {
  for (DType dtype : {f32, f64, bf16, f16}) {
    CAPTURE(name_of(dtype));
    Tensor x = to(doubles({nan, infinity, -infinity, 1.5}), dtype);
    double largest = dtype == f16    ? 65504
                     : dtype == bf16 ? 0x1.fep127
                     : dtype == f32  ? 0x1.fffffep127
                                     : 0x1.fffffffffffffp1023;
    CHECK(values_of(nan_to_num(x)) == std::vector<double>{0, largest, -largest, 1.5});
    CHECK(values_of(nan_to_num(x, {.nan = 2, .positive_infinity = 3, .negative_infinity = 4})) ==
          std::vector<double>{2, 3, 4, 1.5});
    CHECK(gradient_of([](auto& v) { return nan_to_num(v); }, x) == std::vector<double>{0, 0, 0, 1});
  }
  CHECK(nan_to_num(tensor({1, 2})).dtype() == i32);
}

TEST_CASE("logsigmoid neither overflows nor loses digits, nor do its derivatives") {
  auto f = [](const Tensor& x) { return logsigmoid(x); };
  double tiny = std::exp(-100.0);
  Derivatives found = derivatives(f, doubles({100, -100, 1000, -1000, infinity, -infinity, 0}));
  near(found.value, {-tiny, -100, 0, -1000, 0, -infinity, -std::log(2)}, 1e-14);
  near(found.first, {tiny, 1, 0, 1, 0, 1, 0.5}, 1e-14);
  // sigmoid's own derivative is 0 where it is rounded to 1.
  near(found.second, {-tiny, 0, 0, 0, 0, 0, -0.25}, 1e-14);
  near(gradient_of(f, to(doubles({80, -80}), f32)), {std::exp(-80.0), 1}, 1e-5);
  CHECK(std::isnan(logsigmoid(tensor({nan})).item()));
}

TEST_CASE("mish, hardswish and softsign at their ends and kinks, fused and recorded") {
  struct Activation {
    std::string name;
    Run f;
    std::vector<double> x, value, slope;
  };
  const Activation activations[] = {
      {"mish",
       [](auto& x) { return mish(x); },
       {-infinity, -1e30, -750, 0, 60, 1e30, infinity, nan},
       {0, 0, 0, 0, 60, 1e30, infinity, nan},
       {0, 0, 0, 0.6, 1, 1, 1, nan}},
      {"hardswish",
       [](auto& x) { return hardswish(x); },
       {-infinity, -3, -1, 0, 3, 1e300, infinity, nan},
       {0, 0, -1.0 / 3, 0, 3, 1e300, infinity, nan},
       {0, 0, 1.0 / 6, 0.5, 1, 1, 1, 1}},
      {"softsign",
       [](auto& x) { return softsign(x); },
       {-infinity, -1, 0, 3, infinity, nan},
       {-1, -0.5, 0, 0.75, 1, nan},
       {0, 0.25, 1, 1.0 / 16, 0, nan}},
      {"hardsigmoid",
       [](auto& x) { return hardsigmoid(x); },
       {-infinity, -3, 0, 3, infinity, nan},
       {0, 0, 0.5, 1, 1, nan},
       {0, 0, 1.0 / 6, 0, 0, 1.0 / 6}},
      {"celu",
       [](auto& x) { return celu(x, {.alpha = 2}); },
       {-infinity, -2, 0, 3, 1000, infinity},
       {-2, 2 * std::expm1(-1), 0, 3, 1000, infinity},
       {0, std::exp(-1), 1, 1, 1, 1}},
      {"softshrink",
       [](auto& x) { return softshrink(x); },
       {-infinity, -2, -0.5, 0, 0.5, 2, infinity, nan},
       {-infinity, -1.5, 0, 0, 0, 1.5, infinity, nan},
       {1, 1, 0, 0, 0, 1, 1, 1}},
      {"hardshrink",
       [](auto& x) { return hardshrink(x); },
       {-infinity, -2, -0.5, 0, 0.5, 2, infinity, nan},
       {-infinity, -2, 0, 0, 0, 2, infinity, nan},
       {1, 1, 0, 0, 0, 1, 1, 1}},
      {"prelu",
       [](auto& x) { return prelu(x, full({}, 0.25, {.dtype = x.dtype()})); },
       {-infinity, -2, 0, 2, infinity},
       {-infinity, -0.5, 0, 2, infinity},
       {0.25, 0.25, 0.25, 1, 1}},
  };
  for (const Activation& activation : activations) {
    CAPTURE(activation.name);
    Tensor x = doubles(activation.x);
    Derivatives found = derivatives(activation.f, x);
    near(found.value, activation.value, 1e-14);
    near(found.first, activation.slope, 1e-14);
    near(gradient_of(activation.f, x), activation.slope, 1e-14);
    for (std::size_t i = 0; i < activation.x.size(); ++i)
      if (!std::isnan(activation.slope[i]) && !std::isnan(activation.x[i])) CHECK(std::isfinite(found.second[i]));
  }
  // Far below 0, mish is x e^x.
  near(values_of(mish(doubles({-40}))), {-40 * std::exp(-40.0)}, 1e-14);
  near(gradient_of([](auto& x) { return mish(x); }, doubles({-40})), {-39 * std::exp(-40.0)}, 1e-13);
  // The gradient of softsign is not a difference of numbers near 1 / x.
  near(gradient_of([](auto& x) { return softsign(x); }, doubles({1e8})), {1 / (100000001.0 * 100000001.0)}, 1e-14);
  // An infinite element whose slope is 1 leaves the gradient of the weight finite.
  Tensor infinite = doubles({infinity, -2});
  near(gradient_of([&](auto& w) { return prelu(infinite, w); }, doubles({0.25})), {-2});
}

TEST_CASE("prelu takes low precision within an autocast scope, as products do") {
  Tensor x = doubles({-2, 3}), weight = tensor({0.25f});
  auto scope = autocast(bf16);
  Tensor y = prelu(to(x, f32), weight);
  CHECK(y.dtype() == bf16);
  CHECK(values_of(y) == std::vector<double>{-0.5, 3});
  CHECK(values_of(prelu(to(x, bf16), weight)) == std::vector<double>{-0.5, 3});
  nn::PReLU layer(1, {.slope = 0.25});
  CHECK(values_of(layer(to(x, bf16))) == std::vector<double>{-0.5, 3});
}

TEST_CASE("bitwise functions of every integer dtype") {
  Tensor a = to(tensor({0b1100, 255, 7, 0}), u8), b = to(tensor({0b1010, 1, 9, 200}), u8);
  CHECK(bitwise_and(a, b).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{0b1000, 1, 1, 0});
  CHECK(bitwise_or(a, b).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{0b1110, 255, 15, 200});
  CHECK(bitwise_xor(a, b).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{0b0110, 254, 14, 200});
  CHECK(bitwise_not(a).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{243, 0, 248, 255});
  CHECK(bitwise_left_shift(a, b).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{0, 254, 0, 0});
  CHECK(bitwise_right_shift(a, 2).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{3, 63, 1, 0});
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  Tensor wide = tensor({std::int64_t{-1}, least, std::int64_t{1} << 62, std::int64_t{5}});
  CHECK(bitwise_left_shift(wide, 1).to_vector<std::int64_t>() == std::vector<std::int64_t>{-2, 0, least, 10});
  CHECK(bitwise_right_shift(wide, 61).to_vector<std::int64_t>() == std::vector<std::int64_t>{-1, -4, 2, 0});
  for (int places : {64, 1000, -1}) {
    CHECK(bitwise_left_shift(wide, places).to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 0, 0, 0});
    CHECK(bitwise_right_shift(wide, places).to_vector<std::int64_t>() == std::vector<std::int64_t>{-1, -1, 0, 0});
  }
  Tensor flags = tensor({true, false});
  CHECK(bitwise_not(flags).to_vector<bool>() == std::vector<bool>{false, true});
  CHECK(bitwise_xor(flags, true).to_vector<bool>() == std::vector<bool>{false, true});
  CHECK(bitwise_and(tensor({6, 7}), wide.dtype() == i64 ? slice(wide, 0, 0, 1) : wide).dtype() == i64);
}

TEST_CASE("operators on bits join masks and give what the functions of their names do") {
  Tensor x = tensor({-2, 0, 3, 8}), odd = x % 2 == 1;
  CHECK(((x > 0) & !odd).to_vector<bool>() == std::vector<bool>{false, false, false, true});
  CHECK(((x < 0) | odd).to_vector<bool>() == std::vector<bool>{true, false, true, false});
  CHECK((~(x > 0) ^ odd).to_vector<bool>() == std::vector<bool>{true, true, true, false});
  CHECK((x & 6).to_vector<std::int32_t>() == std::vector<std::int32_t>{6, 0, 2, 0});
  CHECK((1 | x).to_vector<std::int32_t>() == std::vector<std::int32_t>{-1, 1, 3, 9});
  CHECK((~x).to_vector<std::int32_t>() == std::vector<std::int32_t>{1, -1, -4, -9});
  int line = __LINE__ + 1;
  std::string text = error_of<DTypeError>([&] { static_cast<void>(ones({2}) & x); });
  CHECK_THAT(text, contains("bitwise_and: takes integers or bools, not f32") &&
                       contains("special_points_test.cpp:" + std::to_string(line)));
}

TEST_CASE("elements are close within a relative and an absolute tolerance") {
  Tensor a = doubles({1, 1, 1, 0, infinity, infinity, nan, 1}),
         b = doubles({1 + 9e-6, 1 + 2e-5, 1, 1e-9, infinity, -infinity, nan, infinity});
  CHECK(isclose(a, b).to_vector<bool>() == std::vector<bool>{true, false, true, true, true, false, false, false});
  CHECK(isclose(a, b, {.equal_nan = true}).to_vector<bool>()[6]);
  CHECK(isclose(a, b, {.relative = infinity}).to_vector<bool>() ==
        std::vector<bool>{true, true, true, true, true, false, false, false});
  CHECK(allclose(doubles({1, 2}), doubles({1, 2 + 1e-6})));
  CHECK_FALSE(allclose(doubles({1, 2}), doubles({1, 2.1})));
  CHECK(allclose(doubles({1, 2}), 1.5, {.relative = 0, .absolute = 0.5}));
  CHECK(allclose(zeros({0}), zeros({0})));
  constexpr std::int64_t large = std::int64_t{1} << 53;
  CHECK(allclose(tensor({large}), tensor({large + 2})));
  CHECK_FALSE(isclose(tensor({1, 2}), tensor({1, 3})).to_vector<bool>()[1]);
}

TEST_CASE("elementary functions and activations say what they cannot do") {
  Tensor u, ints = tensor({{1, 2}, {3, 4}}), m = ones({2, 3}), v = ones({4}), flags = tensor({true, false});
  all_fail<Error>({
      Bad("hardsigmoid: an operand is an undefined tensor", [&] { hardsigmoid(u); }),
      Bad("logsigmoid: an operand is an undefined tensor", [&] { logsigmoid(u); }),
      Bad("celu: an operand is an undefined tensor", [&] { celu(u); }),
      Bad("celu: alpha is 0; relu is the limit", [&] { celu(m, {.alpha = 0}); }),
      Bad("softshrink: an operand is an undefined tensor", [&] { softshrink(u); }),
      Bad("softshrink: lambda is -1, not at least 0", [&] { softshrink(m, {.lambda = -1}); }),
      Bad("hardshrink: an operand is an undefined tensor", [&] { hardshrink(u); }),
      Bad("hardshrink: lambda is nan, not at least 0", [&] { hardshrink(m, {.lambda = nan}); }),
      Bad("prelu: an operand is an undefined tensor", [&] { prelu(m, u); }),
      Bad("fmod: an operand is an undefined tensor", [&] { fmod(m, u); }),
      Bad("xlogy: an operand is an undefined tensor", [&] { xlogy(u, m); }),
      Bad("nan_to_num: an operand is an undefined tensor", [&] { nan_to_num(u); }),
      Bad("logit: epsilon is 0.75, not in [0, 1/2]", [&] { logit(m, {.epsilon = 0.75}); }),
      Bad("logit: an operand is an undefined tensor", [&] { logit(u, {.epsilon = 0.25}); }),
      Bad("bitwise_not: an operand is an undefined tensor", [&] { bitwise_not(u); }),
      Bad("isclose: an operand is an undefined tensor", [&] { isclose(m, u); }),
      Bad("isclose: the tolerance -1 is not at least 0", [&] { isclose(m, m, {.relative = -1}); }),
      Bad("allclose: the tolerance nan is not at least 0", [&] { allclose(m, m, {.absolute = nan}); }),
  });
  all_fail<DTypeError>({
      Bad("mish: takes a floating tensor, not (2, 2) i32", [&] { mish(ints); }),
      Bad("hardswish: takes a floating tensor, not (2, 2) i32", [&] { hardswish(ints); }),
      Bad("softsign: takes a floating tensor, not (2, 2) i32", [&] { softsign(ints); }),
      Bad("hardsigmoid: takes a floating tensor, not (2, 2) i32", [&] { hardsigmoid(ints); }),
      Bad("logsigmoid: takes a floating tensor, not (2, 2) i32", [&] { logsigmoid(ints); }),
      Bad("celu: takes a floating tensor, not (2, 2) i32", [&] { celu(ints); }),
      Bad("softshrink: takes a floating tensor, not (2, 2) i32", [&] { softshrink(ints); }),
      Bad("hardshrink: takes a floating tensor, not (2, 2) i32", [&] { hardshrink(ints); }),
      Bad("prelu: takes a floating tensor, not (2, 2) i32", [&] { prelu(ints, m); }),
      Bad("prelu: the weight (2, 2) i32 does not have the dtype of x (2, 3) f32", [&] { prelu(m, ints); }),
      Bad("fmod: bools cannot be operands", [&] { fmod(flags, flags); }),
      Bad("bitwise_and: takes integers or bools, not f32", [&] { bitwise_and(m, ints); }),
      Bad("bitwise_or: takes integers or bools, not f32", [&] { bitwise_or(ints, 0.5); }),
      Bad("bitwise_xor: takes integers or bools, not f32", [&] { bitwise_xor(m, m); }),
      Bad("bitwise_not: takes integers or bools, not (2, 3) f32", [&] { bitwise_not(m); }),
      Bad("bitwise_left_shift: bools cannot be operands", [&] { bitwise_left_shift(flags, flags); }),
      Bad("bitwise_right_shift: takes integers or bools, not f32", [&] { bitwise_right_shift(m, 1); }),
  });
  all_fail<ShapeError>({
      Bad("prelu: the weight (4,) is neither one number nor one for each channel on axis 1 of x (2, 3)",
          [&] { prelu(m, v); }),
      Bad("prelu: the weight (2, 3) is neither one number", [&] { prelu(m, m); }),
      Bad("fmod: shapes do not broadcast: a (2, 3), b (4,)", [&] { fmod(m, v); }),
      Bad("xlogy: shapes do not broadcast: a (2, 3), b (4,)", [&] { xlogy(m, v); }),
      Bad("isclose: shapes do not broadcast: a (2, 3), b (4,)", [&] { isclose(m, v); }),
      Bad("allclose: shapes do not broadcast: a (2, 3), b (4,)", [&] { allclose(m, v); }),
      Bad("bitwise_and: shapes do not broadcast: a (2, 2), b (3,)",
          [&] {
            bitwise_and(ints, tensor({1, 2, 3}));
          }),
  });
}

}  // namespace reel_test
