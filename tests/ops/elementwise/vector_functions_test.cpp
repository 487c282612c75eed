#include <reel/reel.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "catch.h"
#include "ops/table/table.h"

// Functions that are polynomials of reel's own, over their whole range. The references are those of the C library in long double,
// or their composition.

namespace reel_test {

using namespace reel;

namespace {

using Real = long double;
using Draw = std::function<double(std::mt19937_64&)>;

Draw within(double low, double high) {
  return [=](std::mt19937_64& random) { return std::uniform_real_distribution<double>(low, high)(random); };
}
/// ±2^x for x in [low, high].
Draw of_any_size(double low, double high) {
  return [=](std::mt19937_64& random) {
    double size = std::exp2(within(low, high)(random));
    return random() % 2 == 0 ? size : -size;
  };
}
Draw whole(double low, double high) {
  return [=](std::mt19937_64& random) { return std::round(within(low, high)(random)); };
}

Real logit_of(Real x) { return x < 0.25L ? std::log(x / (1 - x)) : std::log1p((2 * x - 1) / (1 - x)); }
Real gelu_of(Real x) { return std::isinf(x) ? std::max(x, Real(0)) : x / 2 * std::erfc(-x * 0.707106781186547524401L); }
Real erfinv_of(Real y) {
  Real size = std::fabs(y), x = size;
  if (!(size < 1)) return size == 1 ? std::copysign(Real(INFINITY), y) : Real(NAN);
  if (size < 1e-10L) return y * 0.886226925452758013649L;
  x = size < 0.9L ? size : std::sqrt(-std::log(1 - size));
  for (int step = 0; step < 100; ++step) {
    Real error = size < 0.5L ? std::erf(x) - size : (1 - size) - std::erfc(x);
    Real newton = error * 0.886226925452758013649L * std::exp(x * x);
    x -= newton / (1 + x * newton);
  }
  return std::copysign(x, y);
}

// The bounds are the table's.
struct VectorFunction {
  const char* name;
  Tensor (*op)(const Tensor& x);
  Real (*exact)(Real x);
  double ulps;
  Draw draw;
  bool relative_to_x = false;
};
const VectorFunction functions[] = {
    {"erf", [](auto& x) { return erf(x); }, [](Real x) { return std::erf(x); }, 3, within(-6.5, 6.5)},
    {"erf", [](auto& x) { return erf(x); }, [](Real x) { return std::erf(x); }, 3, of_any_size(-1074, 20)},
    {"erfc", [](auto& x) { return erfc(x); }, [](Real x) { return std::erfc(x); }, 4, within(-6, 28)},
    {"erfc", [](auto& x) { return erfc(x); }, [](Real x) { return std::erfc(x); }, 4, within(-1, 1)},
    {"erfinv", [](auto& x) { return erfinv(x); }, erfinv_of, 4, within(-1, 1)},
    {"erfinv", [](auto& x) { return erfinv(x); }, erfinv_of, 4, of_any_size(-1020, 0)},
    {"log10", [](auto& x) { return log10(x); }, [](Real x) { return std::log10(x); }, 1.5, within(0.5, 2)},
    {"log10", [](auto& x) { return log10(x); }, [](Real x) { return std::log10(x); }, 1.5, of_any_size(-1074, 1023)},
    {"logit", [](auto& x) { return logit(x); }, logit_of, 6, within(0, 1)},
    {"logit", [](auto& x) { return logit(x); }, logit_of, 6, within(0.499, 0.501)},
    {"logit", [](auto& x) { return logit(x); }, logit_of, 6, of_any_size(-1074, 0)},
    {"gelu", [](auto& x) { return gelu(x); }, gelu_of, 4, within(-8, 8), true},
    {"gelu", [](auto& x) { return gelu(x); }, gelu_of, 4, of_any_size(-100, 20), true},
};

struct BinaryVectorFunction {
  const char* name;
  Tensor (*op)(const Tensor& a, const Tensor& b);
  Real (*exact)(Real a, Real b);
  double ulps;
  Draw a, b;
};
Real mod_of(Real a, Real b) {
  Real rest = std::fmod(a, b);
  return rest == 0 ? std::copysign(Real(0), b) : (rest < 0) != (b < 0) ? rest + b : rest;
}
Real fmod_of(Real a, Real b) { return std::fmod(a, b); }
Real quotient_of(Real a, Real b) {
  if (b == 0) return a / b;
  if (!std::isfinite(a)) return NAN;
  if (std::isinf(b)) return a != 0 && (a < 0) != (b < 0) ? -1 : a / b;
  return std::round((a - mod_of(a, b)) / b);
}
Real power_of(Real a, Real b) { return std::pow(a, b); }
// Quotients beyond the whole numbers of a dtype are rounded twice.
const BinaryVectorFunction binary_functions[] = {
    {"mod", [](auto& a, auto& b) { return mod(a, b); }, mod_of, 0.5, of_any_size(-20, 20), of_any_size(-20, 20)},
    {"mod", [](auto& a, auto& b) { return mod(a, b); }, mod_of, 0.5, of_any_size(0, 100), of_any_size(-3, 3)},
    {"mod", [](auto& a, auto& b) { return mod(a, b); }, mod_of, 0.5, whole(-1e6, 1e6), whole(1, 9)},
    {"fmod", [](auto& a, auto& b) { return fmod(a, b); }, fmod_of, 0, of_any_size(-20, 20), of_any_size(-20, 20)},
    {"fmod", [](auto& a, auto& b) { return fmod(a, b); }, fmod_of, 0, whole(-1e6, 1e6), whole(1, 9)},
    {"floor_divide", [](auto& a, auto& b) { return floor_divide(a, b); }, quotient_of, 2, of_any_size(-9, 9),
     of_any_size(-9, 9)},
    {"floor_divide", [](auto& a, auto& b) { return floor_divide(a, b); }, quotient_of, 2, whole(-1e6, 1e6),
     whole(1, 9)},
    {"pow", [](auto& a, auto& b) { return pow(a, b); }, power_of, 1, within(0, 3), within(-9, 9)},
    {"pow", [](auto& a, auto& b) { return pow(a, b); }, power_of, 1, within(-3, 3), whole(-9, 9)},
    {"pow", [](auto& a, auto& b) { return pow(a, b); }, power_of, 1, of_any_size(-1020, 1020), within(-1, 1)},
    {"pow", [](auto& a, auto& b) { return pow(a, b); }, power_of, 1, within(0.7, 1.45), within(-1300, 1300)},
};

constexpr std::size_t count = 20'011;  // with a remainder behind the last full vector

/// Numbers of a dtype: ends and kinks of the functions, and `count` drawn ones.
std::vector<double> numbers(const Draw& draw, DType dtype, std::mt19937_64& random) {
  double most = dtype == f64 ? std::numeric_limits<double>::max() : double(std::numeric_limits<float>::max()),
         least = dtype == f64 ? std::numeric_limits<double>::denorm_min() : 0x1p-149;
  std::vector<double> x;
  for (double size : {0.0,
                      0.25,
                      0.5,
                      1.0,
                      1.5,
                      2.0,
                      3.0,
                      5.5,
                      6.0,
                      10.05,
                      26.0,
                      26.6,
                      28.0,
                      40.0,
                      100.0,
                      1000.0,
                      least,
                      most,
                      double(INFINITY),
                      double(NAN)})
    for (double sign : {1.0, -1.0}) x.push_back(sign * size);
  for (std::size_t i = 0; i < count; ++i) x.push_back(draw(random));
  for (double& value : x)
    if (dtype == f32) value = static_cast<double>(static_cast<float>(value));
  return x;
}

/// The error of a result in units of its last place, or of `scale`'s; a result that is no normal number may be off by one.
void check_result(double found, Real exact, Real scale, double ulps, DType dtype) {
  double rounded = dtype == f64 ? static_cast<double>(exact) : static_cast<double>(static_cast<float>(exact));
  if (std::isnan(exact)) {
    CHECK(std::isnan(found));
  } else if (std::isinf(rounded) || std::isinf(found)) {
    CHECK(found == rounded);
  } else {
    Real least = dtype == f64 ? Real(0x1p-1074) : Real(0x1p-149);
    CHECK(std::fabs(found - exact) <= std::max(Real(ulps * last_place(dtype)) * std::fabs(scale), least));
  }
}

}  // namespace

TEST_CASE("functions computed by vectors are within their bounds over the whole range") {
  std::uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (const VectorFunction& f : functions)
    for (DType dtype : {f64, f32}) {
      CAPTURE(f.name, name_of(dtype));
      std::vector<double> x = numbers(f.draw, dtype, random), y = array_of(f.op(to(tensor(x), dtype))).values;
      for (std::size_t i = 0; i < x.size(); ++i) {
        CAPTURE(i, x[i], y[i]);
        Real exact = f.exact(x[i]);
        check_result(y[i], exact, f.relative_to_x ? Real(x[i]) : exact, f.ulps, dtype);
      }
    }
}

TEST_CASE("functions of two operands computed by vectors are within their bounds over the whole range") {
  std::uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (const BinaryVectorFunction& f : binary_functions)
    for (DType dtype : {f64, f32}) {
      CAPTURE(f.name, name_of(dtype));
      std::vector<double> a = numbers(f.a, dtype, random), b = numbers(f.b, dtype, random);
      // Each end with each.
      std::size_t ends = a.size() - count;
      for (std::size_t i = 0; i < ends * ends; ++i) {
        a[ends + i] = a[i / ends];
        b[ends + i] = b[i % ends];
      }
      std::vector<double> y = array_of(f.op(to(tensor(a), dtype), to(tensor(b), dtype))).values;
      for (std::size_t i = 0; i < a.size(); ++i) {
        CAPTURE(i, a[i], b[i], y[i]);
        Real exact = f.exact(a[i], b[i]);
        check_result(y[i], exact, exact, f.ulps, dtype);
      }
    }
}

TEST_CASE("logarithms of powers of 10 are whole") {
  std::vector<double> powers;
  for (int k = 0; k <= 22; ++k) powers.push_back(std::pow(10.0, k));
  std::vector<double> y = array_of(log10(tensor(powers))).values;
  for (std::size_t k = 0; k < powers.size(); ++k) CHECK(y[k] == static_cast<double>(k));
}

}  // namespace reel_test
