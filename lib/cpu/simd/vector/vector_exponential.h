#pragma once

#include <cmath>

#include <hwy/contrib/math/math-inl.h>

#include "vector.h"

// Exponentials and logarithms. Highway leaves infinities, NaN and results beyond the range undefined; they are
// corrected here.

namespace reel::detail {
inline namespace REEL_TARGET {

template <class T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();

/// The largest x with a finite e^x.
template <class T>
inline constexpr double exp_limit = sizeof(T) == 4 ? 88.72283935546875 : 709.782712893384;

template <class T>
Vector<T> exp(Vector<T> x) {
  using V = Vector<T>;
  V limit(exp_limit<T>);
  V y = hn::Exp(typename V::Tag(), select(x < limit, x, limit).raw);
  y = select(x > limit, V(infinity<double>), y);
  return select(x == x, y, x);
}

template <class T>
Vector<T> expm1(Vector<T> x) {
  using V = Vector<T>;
  V limit(exp_limit<T>);
  V y = hn::Expm1(typename V::Tag(), select(x < limit, x, limit).raw);
  y = select(x > limit, V(infinity<double>), y);
  y = select(x == V(0), x, y);  // keeps −0
  return select(x == x, y, x);
}

// Corrects a logarithm of x with its pole at `pole` where the result is not finite.
template <class T>
Vector<T> with_ends_of_log(Vector<T> y, Vector<T> x, double pole) {
  using V = Vector<T>;
  y = select(x < V(pole), V(std::numeric_limits<double>::quiet_NaN()), y);
  y = select(x == V(pole), V(-infinity<double>), y);
  y = select(x == V(infinity<double>), x, y);
  return select(x == x, y, x);
}

template <class T>
Vector<T> log(Vector<T> x) {
  return with_ends_of_log<T>(hn::Log(typename Vector<T>::Tag(), x.raw), x, 0);
}

template <class T>
Vector<T> log1p(Vector<T> x) {
  return with_ends_of_log<T>(hn::Log1p(typename Vector<T>::Tag(), x.raw), x, -1);
}

/// The exponent and the logarithm of the remainder are added, so that powers of two are exact.
template <class T>
Vector<T> log2(Vector<T> x) {
  using V = Vector<T>;
  using Bits = hn::RebindToSigned<typename V::Tag>;
  using Integer = hn::TFromD<Bits>;
  constexpr int fraction_bits = std::numeric_limits<T>::digits - 1;
  constexpr auto root_of_half = static_cast<Integer>(sizeof(T) == 4 ? 0x3f3504f3 : 0x3fe6a09e667f3bcd);
  constexpr double denormal_scale = sizeof(T) == 4 ? 0x1p25 : 0x1p54;
  auto denormal = x < V(static_cast<double>(std::numeric_limits<T>::min()));
  V scaled = select(denormal, x * V(denormal_scale), x);
  auto bits = hn::BitCast(Bits(), scaled.raw);
  auto exponent = hn::ShiftRight<fraction_bits>(hn::Sub(bits, hn::Set(Bits(), root_of_half)));
  V rest = hn::BitCast(typename V::Tag(), hn::Sub(bits, hn::ShiftLeft<fraction_bits>(exponent)));
  V whole = hn::ConvertTo(typename V::Tag(), exponent);
  whole = select(denormal, whole - V(sizeof(T) == 4 ? 25 : 54), whole);
  V y = multiply_add(V(hn::Log(typename V::Tag(), rest.raw)), V(1.4426950408889634), whole);
  return with_ends_of_log<T>(y, x, 0);
}

// x log 2 in f64 has 20 bits more than the result; the C library's is exact for whole numbers.
inline Vector<float> exp2(Vector<float> x) {
  return in_double(x, [](Vector<double> wide) { return exp(wide * Vector<double>(0.6931471805599453)); });
}

inline Vector<double> exp2(Vector<double> x) {
  return by_lane(x, [](double lane) { return std::exp2(lane); });
}

// As many digits more make the logarithms of powers of 10 exact.
inline Vector<float> log10(Vector<float> x) {
  return in_double(x, [](Vector<double> wide) { return log(wide) * Vector<double>(0.4342944819032518); });
}

inline Vector<double> log10(Vector<double> x) {
  return by_lane(x, [](double lane) { return std::log10(lane); });
}

template <class T>
Vector<T> tanh(Vector<T> x) {
  using V = Vector<T>;
  V saturated(sizeof(T) == 4 ? 10 : 20);
  V inside = select(x > saturated, saturated, select(x < -saturated, -saturated, x));
  V y = hn::Tanh(typename V::Tag(), inside.raw);
  return select(x == x, y, x);
}

// e^x / 2 overflows later than e^x: beyond this limit e^(x/2) is squared.
template <class T>
inline constexpr double hyperbolic_limit = sizeof(T) == 4 ? 80 : 700;

template <class T>
Vector<T> cosh(Vector<T> x) {
  using V = Vector<T>;
  V size = abs(x);
  auto far = size > V(hyperbolic_limit<T>);
  V e = exp(select(far, size * V(0.5), size)), half = e * V(0.5);
  return select(far, half * e, half + V(0.5) / e);
}

template <class T>
Vector<T> sinh(Vector<T> x) {
  using V = Vector<T>;
  V size = abs(x);
  auto far = size > V(hyperbolic_limit<T>);
  V e = exp(select(far, size * V(0.5), size)), half = e * V(0.5);
  V y = select(far, half * e, half - V(0.5) / e);
  // Below 1 the difference loses digits; the Taylor series does not.
  V square = x * x;
  constexpr double series[] = {1.0 / 6,        1.0 / 120,        1.0 / 5040,          1.0 / 362880,
                               1.0 / 39916800, 1.0 / 6227020800, 1.0 / 1307674368000, 1.0 / 355687428096000};
  V near = multiply_add(polynomial(square, series), square * size, size);
  return copysign(select(size < V(1), near, y), x);
}

// b log |a| in f64 has 25 bits more than the result.
inline Vector<float> pow(Vector<float> a, Vector<float> b) {
  return in_double(a, b, [](auto base, auto power) {
    using V = Vector<double>;
    V size = abs(base), half = power * V(0.5);
    V y = exp(power * log(size));
    auto whole = floor(power) == power;
    auto odd = hn::AndNot(hn::Eq(floor(half).raw, half.raw), whole);
    y = select(odd, copysign(y, base), y);
    auto no_real = hn::And(hn::And(base < V(0), size < V(infinity<double>)), hn::Not(whole));
    y = select(no_real, V(std::numeric_limits<double>::quiet_NaN()), y);
    // −1 to an infinite power is 1.
    auto one = hn::Or(base == V(1), hn::And(size == V(1), abs(power) == V(infinity<double>)));
    return select(hn::Or(one, power == V(0)), V(1), y);
  });
}

inline Vector<double> pow(Vector<double> a, Vector<double> b) {
  return by_lane(a, b, [](double x, double y) { return std::pow(x, y); });
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
