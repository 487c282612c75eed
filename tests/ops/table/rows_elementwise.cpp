#include <algorithm>
#include <cmath>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

// Scalars, vectors that fill no register, several, and more than the block in which halves are widened; matrices; nothing.
const Shape shapes[] = {{}, {1}, {5}, {37}, {600}, {3, 4}, {2, 3, 2}, {0, 3}};
// Pairs that broadcast, both ways and by number.
const Shape pairs[][2] = {{{}, {}},          {{4}, {}},      {{}, {2, 3}},     {{37}, {37}},        {{3, 4}, {4}},
                          {{3, 1}, {1, 4}},  {{2, 3}, {1}},  {{0, 3}, {1, 3}}, {{2, 1, 3}, {4, 1}}, {{2, 40}, {2, 1}},
                          {{2, 1}, {2, 40}}, {{300}, {300}}, {{2, 300}, {1}}};

struct Unary {
  std::string name;
  UnaryOp op;
  double (*formula)(double);
  Fill fill;
  double ulps;
  std::vector<DType> dtypes;
  bool differentiable = true;
  /// The scale of the error, where that is more than the result.
  double (*scale)(double x) = nullptr;
};

struct Binary {
  std::string name;
  BinaryOp op;
  double (*formula)(double, double);
  Fill left, right;
  double ulps;
  std::vector<DType> dtypes;
  bool differentiable = true;
  double (*scale)(double a, double b) = nullptr;
};

void add_unary(std::vector<Row>& rows, const Unary& unary, const Shape& shape) {
  rows.push_back({.name = unary.name + to_string(shape),
                  .run = [op = unary.op](auto x) { return op(x[0]); },
                  .inputs = {{shape, unary.fill}},
                  .reference =
                      [f = unary.formula, scale = unary.scale](const Arrays& x) {
                        auto of_all = [&](double (*g)(double)) {
                          return make(x[0].shape, [&](const Index& i) { return g(at(x[0], i)); });
                        };
                        Array y = of_all(f);
                        if (scale) y.scales = of_all(scale).values;
                        return y;
                      },
                  .ulps = unary.ulps,
                  .dtypes = unary.dtypes,
                  .differentiable = unary.differentiable});
}

void add_binary(std::vector<Row>& rows, const Binary& binary, const Shape& left, const Shape& right) {
  rows.push_back({.name = binary.name + to_string(left) + to_string(right),
                  .run = [op = binary.op](auto x) { return op(x[0], x[1]); },
                  .inputs = {{left, binary.left}, {right, binary.right}},
                  .reference =
                      [f = binary.formula, scale = binary.scale](const Arrays& x) {
                        auto of_both = [&](double (*g)(double, double)) {
                          return make(broadcast_all(x), [&](const Index& i) { return g(at(x[0], i), at(x[1], i)); });
                        };
                        Array y = of_both(f);
                        if (scale) y.scales = of_both(scale).values;
                        return y;
                      },
                  .ulps = binary.ulps,
                  .dtypes = binary.dtypes,
                  .differentiable = binary.differentiable});
}

void add_comparison(std::vector<Row>& rows, const std::string& name, BinaryOp op, double (*f)(double, double)) {
  // Numbers that are often equal.
  rows.push_back({.name = name + " of equal numbers",
                  .run = [op](auto x) { return op(x[0], x[0] * 1); },
                  .inputs = {{{9}}},
                  .reference =
                      [f](const Arrays& x) {
                        return make(x[0].shape, [&](const Index& i) { return f(at(x[0], i), at(x[0], i)); });
                      },
                  .ulps = 0,
                  .dtypes = all_numbers,
                  .differentiable = false});
}

void add_where(std::vector<Row>& rows, const Shape& condition, const Shape& a, const Shape& b) {
  rows.push_back({.name = "where" + to_string(condition) + to_string(a) + to_string(b),
                  .run = [](auto x) { return where(x[0], x[1], x[2]); },
                  .inputs = {{condition, Fill::flags}, {a}, {b}},
                  .reference =
                      [](const Arrays& x) {
                        return make(broadcast_all(x),
                                    [&](const Index& i) { return at(x[0], i) != 0 ? at(x[1], i) : at(x[2], i); });
                      },
                  .ulps = 0,
                  .dtypes = all_dtypes});
}

double clamped(double x, double low, double high) { return std::min(std::max(x, low), high); }

Array of_three(const Arrays& x, double (*f)(double, double, double)) {
  return make(broadcast_all(x), [&](const Index& i) { return f(at(x[0], i), at(x[1], i), at(x[2], i)); });
}

void add_clamp(std::vector<Row>& rows, const Shape& x, const Shape& low, const Shape& high) {
  rows.push_back({.name = "clamp" + to_string(x) + to_string(low) + to_string(high),
                  .run = [](auto x) { return clamp(x[0], x[1], x[2]); },
                  .inputs = {{x}, {low}, {high}},
                  .reference = [](const Arrays& x) { return of_three(x, clamped); },
                  .ulps = 0,
                  .dtypes = all_numbers});
}

void add_clamp_to_numbers(std::vector<Row>& rows, const Shape& shape) {
  const double ends[][2] = {{-1, 1}, {-INFINITY, 0.75}, {-0.5, INFINITY}, {1, -1}};
  for (const auto& [low, high] : ends)
    rows.push_back({.name = "clamp to numbers" + to_string(shape),
                    .run = [low = low, high = high](auto x) { return clamp(x[0], low, high); },
                    .inputs = {{shape}},
                    .reference =
                        [low = low, high = high](const Arrays& x) {
                          return make(x[0].shape, [&](const Index& i) { return clamped(at(x[0], i), low, high); });
                        },
                    .ulps = 0,
                    .attributes = {{"low", {low}}, {"high", {high}}}});
}

// The difference, the product and the sum: half a unit each, of numbers up to |a| + |b|.
void add_lerp(std::vector<Row>& rows, const Shape& a, const Shape& b, const Shape& weight) {
  rows.push_back({.name = "lerp" + to_string(a) + to_string(b) + to_string(weight),
                  .run = [](auto x) { return lerp(x[0], x[1], x[2]); },
                  .inputs = {{a}, {b}, {weight}},
                  .reference =
                      [](const Arrays& x) {
                        Array y = of_three(x, [](double a, double b, double w) { return a + w * (b - a); });
                        y.scales = of_three(x, [](double a, double b, double w) {
                                     return std::abs(a) + std::abs(b) + (std::abs(w) + 1) * std::abs(b - a);
                                   }).values;
                        return y;
                      },
                  .ulps = 2});
}

// Σ 1 / (q + k)^s by its first terms and the integral over the rest with two corrections, off by some 10⁻¹⁵.
double reference_zeta(double s, double q) {
  long double sum = 0, from = static_cast<long double>(q) + 1000, power = s;
  for (int k = 0; k < 1000; ++k) sum += std::pow(static_cast<long double>(q) + k, -power);
  sum += std::pow(from, 1 - power) / (power - 1) + std::pow(from, -power) / 2 + power / 12 * std::pow(from, -power - 1);
  return static_cast<double>(sum);
}

double reference_digamma(double x) {
  long double sum = 0, from = static_cast<long double>(x) + 2000;
  for (int k = 0; k < 2000; ++k) sum += 1 / (static_cast<long double>(x) + k);
  return static_cast<double>(std::log(from) - 1 / (2 * from) - 1 / (12 * from * from) - sum);
}

// Newton's method, which from 0 on cannot overshoot.
double reference_erfinv(double y) {
  long double x = 0;
  for (int step = 0; step < 40; ++step)
    x -= (std::erf(x) - static_cast<long double>(y)) * 0.886226925452758013649L * std::exp(x * x);
  return static_cast<double>(x);
}

double reference_mod(double a, double b) {
  double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

void add_polygamma(std::vector<Row>& rows, const Shape& shape) {
  for (int order : {1, 2, 5})
    rows.push_back({.name = "polygamma of order " + std::to_string(order) + to_string(shape),
                    .run = [order](auto x) { return polygamma(order, x[0]); },
                    .inputs = {{shape, Fill::positive}},
                    .reference =
                        [order](const Arrays& x) {
                          double factor = (order % 2 == 0 ? -1 : 1) * std::tgamma(order + 1);
                          return make(x[0].shape,
                                      [&](const Index& i) { return factor * reference_zeta(order + 1, at(x[0], i)); });
                        },
                    // Ten powers of up to 1 unit each, and their sum.
                    .ulps = 8,
                    .dtypes = all_numbers,
                    .attributes = {{"order", {static_cast<double>(order)}}}});
}

void add_scalars(std::vector<Row>& rows) {
  struct Scalar {
    std::string op, name;
    Tensor (*run)(const Tensor& x);
    double (*formula)(double);
  };
  const Scalar scalars[] = {
      {"add", "x + 2", [](const Tensor& x) { return x + 2; }, [](double x) { return x + 2; }},
      {"sub", "0.5 - x", [](const Tensor& x) { return 0.5 - x; }, [](double x) { return 0.5 - x; }},
      {"mul", "x * 0.25f", [](const Tensor& x) { return x * 0.25f; }, [](double x) { return x * 0.25; }},
      {"div", "2 / x", [](const Tensor& x) { return 2 / x; }, [](double x) { return 2 / x; }},
      {"mod", "x % 0.75", [](const Tensor& x) { return x % 0.75; }, [](double x) { return reference_mod(x, 0.75); }},
      {"lerp", "lerp(x, 2, 0.25)", [](const Tensor& x) { return lerp(x, 2, 0.25); },
       [](double x) { return x + 0.25 * (2 - x); }},
      {"maximum", "maximum(x, 1)", [](const Tensor& x) { return maximum(x, 1); },
       [](double x) { return std::max(x, 1.0); }},
      {"pow", "pow(x, 2)", [](const Tensor& x) { return pow(x, 2); }, [](double x) { return x * x; }},
      {"pow", "pow(x, 3)", [](const Tensor& x) { return pow(x, 3); }, [](double x) { return x * x * x; }},
      {"where", "where(x > 1, x, 0)", [](const Tensor& x) { return where(x > 1, x, 0); },
       [](double x) { return x > 1 ? x : 0; }},
  };
  for (const Scalar& scalar : scalars)
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{2, 3}})
      rows.push_back({.name = scalar.name + to_string(shape),
                      .run = [run = scalar.run](auto x) { return run(x[0]); },
                      .inputs = {{shape, Fill::positive}},
                      .reference =
                          [f = scalar.formula](const Arrays& x) {
                            return make(x[0].shape, [&](const Index& i) { return f(at(x[0], i)); });
                          },
                      // x³ itself is rounded twice in f64.
                      .ulps = 1.5,
                      .op = scalar.op});
}

double sign_of(double x) { return (x > 0) - (x < 0); }
double nonzero(double x) { return x != 0; }

double reference_logit(double x) { return std::log1p((2 * x - 1) / (1 - x)); }

double reference_sinc(double x) {
  constexpr double pi = 3.141592653589793;
  double whole = std::nearbyint(x), sine = std::sin(pi * (x - whole)) * (std::fmod(whole, 2) == 0 ? 1 : -1);
  return x == 0 ? 1 : sine / (pi * x);
}

// Iₙ(x) / (x/2)ⁿ by its power series, whose terms are positive.
long double bessel_series(double x, int order) {
  long double sum = 0, term = 1, quarter = static_cast<long double>(x) * x / 4;
  for (int k = 1; k < 100; ++k) {
    sum += term;
    term *= quarter / (static_cast<long double>(k) * (k + order));
  }
  return sum;
}

double reference_xlogy(double x, double y) { return x == 0 ? 0 : x * std::log(y); }

double of_bits(double a, double b, std::int64_t (*f)(std::int64_t, std::int64_t)) {
  return static_cast<double>(f(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)));
}

// Each element close to itself, and to none that is drawn with it.
double reference_close(double a, double b) { return std::abs(a - b) <= 1e-8 + 1e-5 * std::abs(b); }

void add_allclose(std::vector<Row>& rows, const Shape& a, const Shape& b) {
  rows.push_back({.name = "allclose" + to_string(a) + to_string(b),
                  .run =
                      [](auto x) {
                        bool close = allclose(x[0], x[1]);
                        return full({}, close, {.dtype = boolean, .device = x[0].device()});
                      },
                  .inputs = {{a}, {b}},
                  .reference =
                      [](const Arrays& x) {
                        bool close = true;
                        for_each_index(broadcast_all(x), [&](const Index& i) {
                          close &= reference_close(at(x[0], i), at(x[1], i)) != 0;
                        });
                        return Array{{}, {static_cast<double>(close)}};
                      },
                  .dtypes = all_dtypes,
                  .differentiable = false});
}

const std::vector<DType> bit_dtypes{i32, i64, u8, boolean, i8, i16};

// Bounds: what IEEE 754 rounds correctly is off by half a unit, and a sum, a product or a quotient adds one half.
// Highway states 1 unit for exp, 2 for asin, acos and log1p, 3 for sin, cos and atan, 4 for expm1, log and tanh, of the
// result without its own rounding. sigmoid adds to exp's error one half each for the sum and the quotient, 2 in all;
// sinh and cosh add three. log2 is a product and a sum. tan, erf and erfinv are polynomials good to 1 unit, with 3 to 5
// roundings. powf is off by less than 1. lgamma and digamma are computed in f64;
// digamma is a difference of a logarithm and reciprocals.
const Unary unaries[] = {
    {"neg", neg, [](double x) { return -x; }, Fill::any, 0, all_numbers},
    {"abs", abs, [](double x) { return std::abs(x); }, Fill::nonzero, 0, all_numbers},
    {"sign", sign, sign_of, Fill::nonzero, 0, all_numbers},
    {"square", square, [](double x) { return x * x; }, Fill::any, 0.5, all_numbers},
    {"relu", relu, [](double x) { return std::max(x, 0.0); }, Fill::nonzero, 0, all_numbers},
    {"floor", floor, [](double x) { return std::floor(x); }, Fill::any, 0, all_numbers},
    {"ceil", ceil, [](double x) { return std::ceil(x); }, Fill::any, 0, all_numbers},
    {"round", round, [](double x) { return std::nearbyint(x); }, Fill::any, 0, all_numbers},
    {"trunc", trunc, [](double x) { return std::trunc(x); }, Fill::any, 0, all_numbers},
    {"reciprocal", reciprocal, [](double x) { return 1 / x; }, Fill::nonzero, 0.5, all_numbers},
    {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, Fill::positive, 0.5, all_numbers},
    {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, Fill::positive, 1.5, all_numbers},
    {"exp", exp, [](double x) { return std::exp(x); }, Fill::any, 1.5, all_numbers},
    {"expm1", expm1, [](double x) { return std::expm1(x); }, Fill::any, 4.5, all_numbers},
    {"log", log, [](double x) { return std::log(x); }, Fill::positive, 4, all_numbers},
    {"log1p", log1p, [](double x) { return std::log1p(x); }, Fill::positive, 2.5, all_numbers},
    {"log1p of negative numbers", log1p, [](double x) { return std::log1p(x); }, Fill::unit, 2.5, floating_dtypes},
    {"log2", log2, [](double x) { return std::log2(x); }, Fill::positive, 3, all_numbers},
    {"sin", sin, [](double x) { return std::sin(x); }, Fill::any, 3.5, all_numbers},
    {"cos", cos, [](double x) { return std::cos(x); }, Fill::any, 3.5, all_numbers},
    {"tan", tan, [](double x) { return std::tan(x); }, Fill::unit, 3.5, all_numbers},
    {"asin", asin, [](double x) { return std::asin(x); }, Fill::unit, 2.5, floating_dtypes},
    {"acos", acos, [](double x) { return std::acos(x); }, Fill::unit, 2.5, floating_dtypes},
    {"atan", atan, [](double x) { return std::atan(x); }, Fill::any, 3.5, all_numbers},
    {"sinh", sinh, [](double x) { return std::sinh(x); }, Fill::any, 2.5, all_numbers},
    {"cosh", cosh, [](double x) { return std::cosh(x); }, Fill::any, 2.5, all_numbers},
    {"tanh", tanh, [](double x) { return std::tanh(x); }, Fill::any, 4, all_numbers},
    {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, Fill::any, 3, all_numbers},
    {"erf", erf, [](double x) { return std::erf(x); }, Fill::any, 3, all_numbers},
    {"erfinv", erfinv, reference_erfinv, Fill::unit, 4, floating_dtypes},
    {"lgamma", lgamma, [](double x) { return std::lgamma(x); }, Fill::positive, 1, all_numbers},
    {"digamma", digamma, reference_digamma, Fill::positive, 8, all_numbers, true,
     [](double x) { return 1 / x + std::abs(std::log(x)) + 1; }},
    {"exp2", exp2, [](double x) { return std::exp2(x); }, Fill::any, 1, all_numbers},
    {"log10", log10, [](double x) { return std::log10(x); }, Fill::positive, 1.5, all_numbers},
    {"asinh", asinh, [](double x) { return std::asinh(x); }, Fill::any, 5, all_numbers},
    // Multiples of powers of 2 are exact in every dtype.
    {"acosh", [](const Arg& x) { return acosh(x * 4); }, [](double x) { return std::acosh(4 * x); }, Fill::positive, 5,
     all_numbers},
    {"atanh", atanh, [](double x) { return std::atanh(x); }, Fill::unit, 5, floating_dtypes},
    {"logit", [](const Arg& x) { return logit(x * 0.25); }, [](double x) { return reference_logit(x / 4); },
     Fill::positive, 6, all_numbers},
    {"sinc", sinc, reference_sinc, Fill::any, 6, all_numbers},
    {"erfc", erfc, [](double x) { return std::erfc(x); }, Fill::any, 4, all_numbers},
    {"i0", i0, [](double x) { return static_cast<double>(bessel_series(x, 0)); }, Fill::any, 10, all_numbers},
    {"i1", i1, [](double x) { return static_cast<double>(bessel_series(x, 1) * x / 2); }, Fill::any, 10, all_numbers},
    {"nan_to_num", [](const Arg& x) { return nan_to_num(x); }, [](double x) { return x; }, Fill::any, 0, all_dtypes},
    {"bitwise_not", bitwise_not, [](double x) { return -x - 1; }, Fill::any, 0, {i32, i64}, false},
    {"logical_not", logical_not, [](double x) { return 1 - nonzero(x); }, Fill::any, 0, all_dtypes, false},
    {"isnan", isnan, [](double) { return 0.0; }, Fill::any, 0, all_dtypes, false},
    {"isinf", isinf, [](double) { return 0.0; }, Fill::any, 0, all_dtypes, false},
    {"isfinite", isfinite, [](double) { return 1.0; }, Fill::any, 0, all_dtypes, false},
    {"copy", copy, [](double x) { return x; }, Fill::any, 0, all_dtypes},
    {"contiguous", contiguous, [](double x) { return x; }, Fill::any, 0, all_dtypes},
};

const Binary binaries[] = {
    {"add", add, [](double a, double b) { return a + b; }, Fill::any, Fill::any, 0.5, all_numbers},
    {"sub", sub, [](double a, double b) { return a - b; }, Fill::any, Fill::any, 0.5, all_numbers},
    {"mul", mul, [](double a, double b) { return a * b; }, Fill::any, Fill::any, 0.5, all_numbers},
    {"div", div, [](double a, double b) { return a / b; }, Fill::any, Fill::nonzero, 0.5, all_numbers},
    {"floor_divide", floor_divide, [](double a, double b) { return std::round((a - reference_mod(a, b)) / b); },
     Fill::any, Fill::nonzero, 0, all_numbers},
    {"mod", mod, reference_mod, Fill::any, Fill::nonzero, 0.5, all_numbers},
    {"fmod", fmod, [](double a, double b) { return std::fmod(a, b); }, Fill::any, Fill::nonzero, 0, all_numbers},
    {"xlogy", xlogy, reference_xlogy, Fill::any, Fill::positive, 5, all_numbers},
    {"bitwise_and", bitwise_and,
     [](double a, double b) { return of_bits(a, b, [](std::int64_t x, std::int64_t y) { return x & y; }); }, Fill::any,
     Fill::any, 0, bit_dtypes, false},
    {"bitwise_or", bitwise_or,
     [](double a, double b) { return of_bits(a, b, [](std::int64_t x, std::int64_t y) { return x | y; }); }, Fill::any,
     Fill::any, 0, bit_dtypes, false},
    {"bitwise_xor", bitwise_xor,
     [](double a, double b) { return of_bits(a, b, [](std::int64_t x, std::int64_t y) { return x ^ y; }); }, Fill::any,
     Fill::any, 0, bit_dtypes, false},
    {"bitwise_left_shift",
     bitwise_left_shift,
     [](double a, double b) { return b < 0 ? 0 : std::ldexp(a, int(b)); },
     Fill::any,
     Fill::any,
     0,
     {i32, i64},
     false},
    {"bitwise_right_shift",
     bitwise_right_shift,
     [](double a, double b) { return b < 0 ? -double(a < 0) : std::floor(std::ldexp(a, -int(b))); },
     Fill::any,
     Fill::any,
     0,
     {i32, i64},
     false},
    {"isclose", [](const Arg& a, const Arg& b) { return isclose(a, b); }, reference_close, Fill::any, Fill::any, 0,
     all_dtypes, false},
    {"pow",
     pow,
     [](double a, double b) { return std::pow(a, b); },
     Fill::positive,
     Fill::positive,
     1,
     // Powers of the numbers drawn do not fit smaller integers, which wrap around.
     {f32, f64, bf16, f16, i32, i64}},
    {"pow of negative powers", pow, [](double a, double b) { return std::pow(a, b); }, Fill::positive, Fill::any, 1,
     floating_dtypes},
    {"maximum", maximum, [](double a, double b) { return std::max(a, b); }, Fill::any, Fill::any, 0, all_numbers},
    {"minimum", minimum, [](double a, double b) { return std::min(a, b); }, Fill::any, Fill::any, 0, all_numbers},
    // The quotient's half, the arc's 3.5, and one half more from the quadrant.
    {"atan2", atan2, [](double a, double b) { return std::atan2(a, b); }, Fill::nonzero, Fill::nonzero, 4.5,
     all_numbers},
    {"logaddexp", logaddexp, [](double a, double b) { return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b))); },
     Fill::any, Fill::any, 4, all_numbers, true,
     [](double a, double b) {
       return std::max({std::abs(a), std::abs(b), 1.0});
     }},
    {"equal", equal, [](double a, double b) -> double { return a == b; }, Fill::any, Fill::any, 0, all_dtypes, false},
    {"not_equal", not_equal, [](double a, double b) -> double { return a != b; }, Fill::any, Fill::any, 0, all_dtypes,
     false},
    {"less", less, [](double a, double b) -> double { return a < b; }, Fill::any, Fill::any, 0, all_dtypes, false},
    {"less_equal", less_equal, [](double a, double b) -> double { return a <= b; }, Fill::any, Fill::any, 0, all_dtypes,
     false},
    {"greater", greater, [](double a, double b) -> double { return a > b; }, Fill::any, Fill::any, 0, all_dtypes,
     false},
    {"greater_equal", greater_equal, [](double a, double b) -> double { return a >= b; }, Fill::any, Fill::any, 0,
     all_dtypes, false},
    {"logical_and", logical_and, [](double a, double b) { return nonzero(a) * nonzero(b); }, Fill::any, Fill::any, 0,
     all_dtypes, false},
    {"logical_or", logical_or, [](double a, double b) { return std::max(nonzero(a), nonzero(b)); }, Fill::any,
     Fill::any, 0, all_dtypes, false},
    {"logical_xor", logical_xor, [](double a, double b) -> double { return nonzero(a) != nonzero(b); }, Fill::any,
     Fill::any, 0, all_dtypes, false},
};

void add_conversion(std::vector<Row>& rows, DType dtype, const Shape& shape) {
  auto converted = [=](const Arrays& x) {
    if (is_floating(dtype)) return x[0];
    return make(shape, [&](const Index& i) {
      return dtype == boolean ? static_cast<double>(at(x[0], i) != 0) : std::trunc(at(x[0], i));
    });
  };
  rows.push_back({.name = "to" + to_string(shape) + name_of(dtype),
                  .run = [dtype](auto x) { return to(x[0], dtype); },
                  .inputs = {{shape}},
                  .reference = converted,
                  .dtypes = all_dtypes,
                  .differentiable = dtype == f64,
                  .attributes = {{"dtype", {static_cast<double>(dtype)}}}});
}

void add_rows(std::vector<Row>& rows) {
  // Without the factors by which their domains are reached below.
  add_unary(rows, {"acosh", acosh, [](double x) { return std::acosh(x); }, Fill::any, 5, all_numbers}, {0, 3});
  add_unary(rows, {"logit", [](const Arg& x) { return logit(x); }, reference_logit, Fill::any, 6, all_numbers}, {0, 3});
  for (const Unary& unary : unaries)
    for (const Shape& shape : shapes) add_unary(rows, unary, shape);
  for (const Binary& binary : binaries) {
    for (const auto& [left, right] : pairs) add_binary(rows, binary, left, right);
    if (!binary.differentiable && binary.dtypes == all_dtypes)
      add_comparison(rows, binary.name, binary.op, binary.formula);
  }
  const Shape choices[][3] = {
      {{}, {}, {}}, {{5}, {5}, {5}}, {{3, 1}, {4}, {}}, {{4}, {2, 1, 1}, {3, 1}}, {{0}, {}, {1}}};
  for (const auto& [condition, a, b] : choices) add_where(rows, condition, a, b);
  const Shape triples[][3] = {
      {{}, {}, {}}, {{600}, {600}, {600}}, {{3, 4}, {4}, {}}, {{4}, {2, 1, 1}, {3, 1}}, {{0, 3}, {1, 3}, {}}};
  for (const auto& [first, second, third] : triples) {
    add_clamp(rows, first, second, third);
    add_lerp(rows, first, second, third);
  }
  for (const Shape& shape : {Shape{}, Shape{37}, Shape{0, 3}}) {
    add_clamp_to_numbers(rows, shape);
    add_polygamma(rows, shape);
  }
  for (const auto& [left, right] : pairs) add_allclose(rows, left, right);
  add_scalars(rows);
  for (DType dtype : {f64, f32, bf16, f16, i64, i32, boolean})
    for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{0, 2}}) add_conversion(rows, dtype, shape);
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (const Unary& unary : unaries)
    for (int rank : {1, 2, 3}) add_unary(rows, unary, random_shape(random, rank));
  for (const Binary& binary : binaries)
    for (int rank : {1, 2, 3}) {
      Shape left = random_shape(random, rank), right = left;
      if (rank == 3) left[1] = right[2] = 1;
      add_binary(rows, binary, left, right);
      if (binary.name == "isclose") add_allclose(rows, left, right);
    }
  for (int rank : {1, 2, 3}) {
    Shape shape = random_shape(random, rank, 20);
    add_where(rows, shape, shape, {});
    add_clamp(rows, shape, shape, {1});
    add_lerp(rows, shape, shape, {});
    add_clamp_to_numbers(rows, shape);
    add_polygamma(rows, shape);
    for (DType dtype : {f64, i64, boolean}) add_conversion(rows, dtype, shape);
  }
}

}  // namespace

const RowFamily elementwise_rows{add_rows, add_random_rows};

}  // namespace reel_test
