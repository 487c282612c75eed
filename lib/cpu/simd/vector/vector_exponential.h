#pragma once

#include <cmath>

#include <hwy/contrib/math/math-inl.h>

#include "vector.h"

// Exponentials and logarithms. Highway leaves infinities, NaN and results beyond the range undefined; they are
// corrected here. The exponential and the logarithm of f32 are polynomials fitted for reel, by least squares reweighted
// towards the minimal maximum of the relative error: Highway's take more than twice the instructions, of which its
// conversions to integers are many.

namespace reel::detail::inline REEL_TARGET {

template <class T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();

/// The largest x with a finite e^x.
template <class T>
inline constexpr double exp_limit = sizeof(T) == 4 ? 88.72283935546875 : 709.782712893384;

inline Vector<double> exp(Vector<double> x) {
  using V = Vector<double>;
  if (hn::AllTrue(V::Tag(), abs(x) < V(700))) [[likely]]
    return hn::Exp(V::Tag(), x.raw);
  V limit(exp_limit<double>);
  V y = hn::Exp(V::Tag(), select(x < limit, x, limit).raw);
  y = select(x > limit, V(infinity<double>), y);
  return select(x == x, y, x);
}

/// The whole number nearest to x, and the bits that it adds to those of a number that is multiplied by 2 to its power. |x| is
/// less than 2²²: the sum with 1.5 · 2²³ has no fraction, and the whole number in its last bits.
struct WholePart {
  using Bits = hn::RebindToSigned<Vector<float>::Tag>;
  Vector<float> whole;
  hn::Vec<Bits> exponent;

  /// The whole part of a b, rounded once where the processor can.
  WholePart(Vector<float> a, Vector<float> b) : WholePart(multiply_add(a, b, Vector<float>(0x1.8p23))) {}
  Vector<float> times_power(Vector<float> x) const {
    return hn::BitCast(Vector<float>::Tag(), hn::Add(hn::BitCast(Bits(), x.raw), exponent));
  }

 private:
  explicit WholePart(Vector<float> sum)
      : whole(sum - Vector<float>(0x1.8p23)), exponent(hn::ShiftLeft<23>(hn::BitCast(Bits(), sum.raw))) {}
};

/// e^(x − n log 2) − 1, with an error of 4·10⁻⁹ relative to e^(x − n log 2) before it is rounded, where n is `whole` and the
/// difference at most log 2 / 2.
inline Vector<float> expm1_of_rest(Vector<float> x, Vector<float> whole) {
  using V = Vector<float>;
  constexpr double series[] = {0.49999993373, 0.16666519523, 0.04166840109, 0.0083688511541, 0.0013814320587};
  // The first part of log 2 has as few bits as make its product with n exact.
  V rest = multiply_add(whole, V(-1.428606765330187e-6), multiply_add(whole, V(-0.693145751953125), x));
  return multiply_add(polynomial(rest, series), rest * rest, rest);
}

// For results that are not normal numbers, too. Where they are, the bits are those of `exp`.
HWY_NOINLINE inline Vector<float> exp_of_any(Vector<float> x) {
  using V = Vector<float>;
  using Bits = WholePart::Bits;
  // A product that is no normal number takes a hundred times as long, so one that rounds to 0 is not formed.
  auto vanishes = x < V(-104);
  V inside = select(vanishes, V(0), select(x < V(89), x, V(89)));
  V whole = WholePart(inside, V(1.4426950408889634)).whole;
  // 2^n may be no normal number, but its factors are.
  auto power_of_two = [](V n) {
    return hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(Bits(), n.raw), hn::Set(Bits(), 127)));
  };
  V half = floor(whole * V(0.5));
  V y = (expm1_of_rest(inside, whole) + V(1)) * V(hn::BitCast(V::Tag(), power_of_two(half))) *
        V(hn::BitCast(V::Tag(), power_of_two(whole - half)));
  return select(x == x, select(vanishes, V(0), y), x);
}

inline Vector<float> exp(Vector<float> x) {
  using V = Vector<float>;
  if (!hn::AllTrue(V::Tag(), abs(x) < V(87))) [[unlikely]]
    return exp_of_any(x);
  WholePart n(x, V(1.4426950408889634));
  return n.times_power(expm1_of_rest(x, n.whole) + V(1));
}

inline Vector<double> expm1(Vector<double> x) {
  using V = Vector<double>;
  V limit(exp_limit<double>);
  V y = hn::Expm1(V::Tag(), select(x < limit, x, limit).raw);
  y = select(x > limit, V(infinity<double>), y);
  y = select(x == V(0), x, y);  // keeps −0
  return select(x == x, y, x);
}

/// e^x − 1 for |x| < 87; 0 for −0.
inline Vector<float> expm1_within_range(Vector<float> x) {
  using V = Vector<float>;
  WholePart n(x, V(1.4426950408889634));
  V power = n.times_power(V(1));
  return multiply_add(expm1_of_rest(x, n.whole), power, power - V(1));
}

inline Vector<float> expm1(Vector<float> x) {
  using V = Vector<float>;
  if (hn::AllTrue(V::Tag(), abs(x) < V(87))) [[likely]]
    return select(x == V(0), x, expm1_within_range(x));
  // Outside of the range the result is e^x, or −1.
  auto within = abs(x) < V(87);
  V y = select(x == V(0), x, expm1_within_range(select(within, x, V(0))));
  return select(within, y, exp(x) - V(1));
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

/// True for all positive normal numbers.
template <class T>
auto has_ordinary_log(Vector<T> x) {
  using V = Vector<T>;
  return hn::And(x >= V(static_cast<double>(std::numeric_limits<T>::min())), x < V(infinity<double>));
}

inline Vector<double> log(Vector<double> x) {
  using V = Vector<double>;
  V y = hn::Log(V::Tag(), x.raw);
  if (hn::AllTrue(V::Tag(), has_ordinary_log(x))) [[likely]]
    return y;
  return with_ends_of_log<double>(y, x, 0);
}

/// log x for positive normal numbers x, after `exponent` has changed the power of two that is split off x: the remainder is
/// in [√½, √2].
template <class Exponent>
Vector<float> log_of_normal(Vector<float> x, Exponent exponent) {
  using V = Vector<float>;
  using Bits = hn::RebindToSigned<V::Tag>;
  // (log(1 + f) − f + f² / 2) / f³, with an error of 6·10⁻⁹ relative to the logarithm.
  constexpr double series[] = {0.33333331507, -0.25000823737, 0.20001248242, -0.16623272123,
                               0.14201172948, -0.13160448184, 0.12766135067, -0.076397067528};
  auto bits = hn::BitCast(Bits(), x.raw);
  auto power = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(Bits(), 0x3f3504f3)));
  V rest = hn::BitCast(V::Tag(), hn::Sub(bits, hn::ShiftLeft<23>(power)));
  V n = exponent(V(hn::ConvertTo(V::Tag(), power))), f = rest - V(1), square = f * f;
  // Two polynomials of half the degree, which a processor computes at once.
  constexpr double even[] = {series[0], series[2], series[4], series[6]},
                   odd[] = {series[1], series[3], series[5], series[7]};
  V sum = multiply_add(polynomial(square, odd), f, polynomial(square, even));
  V small = multiply_add(n, V(1.428606765330187e-6), multiply_add(sum * f, square, V(-0.5) * square));
  return multiply_add(n, V(0.693145751953125), f + small);
}

HWY_NOINLINE inline Vector<float> log_of_any(Vector<float> x) {
  using V = Vector<float>;
  auto denormal = x < V(static_cast<double>(std::numeric_limits<float>::min()));
  V y = log_of_normal(select(denormal, x * V(0x1p25), x),
                      [&](V power) { return select(denormal, power - V(25), power); });
  return with_ends_of_log<float>(y, x, 0);
}

inline Vector<float> log(Vector<float> x) {
  using V = Vector<float>;
  if (!hn::AllTrue(V::Tag(), has_ordinary_log(x))) [[unlikely]]
    return log_of_any(x);
  return log_of_normal(x, [](V power) { return power; });
}

template <class T>
Vector<T> log1p(Vector<T> x) {
  return with_ends_of_log<T>(hn::Log1p(typename Vector<T>::Tag(), x.raw), x, -1);
}

/// The exponent and the logarithm of the remainder are added, so that powers of two are exact.
inline Vector<float> log2(Vector<float> x) {
  using V = Vector<float>;
  auto denormal = x < V(static_cast<double>(std::numeric_limits<float>::min()));
  V whole(0), fraction = log_of_normal(select(denormal, x * V(0x1p25), x), [&](V power) {
                whole = select(denormal, power - V(25), power);
                return V(0);
              });
  return with_ends_of_log<float>(multiply_add(fraction, V(1.4426950408889634), whole), x, 0);
}

inline Vector<double> log2(Vector<double> x) {
  using V = Vector<double>;
  using Bits = hn::RebindToSigned<V::Tag>;
  constexpr int fraction_bits = std::numeric_limits<double>::digits - 1;
  auto denormal = x < V(std::numeric_limits<double>::min());
  V scaled = select(denormal, x * V(0x1p54), x);
  auto bits = hn::BitCast(Bits(), scaled.raw);
  auto exponent = hn::ShiftRight<fraction_bits>(hn::Sub(bits, hn::Set(Bits(), 0x3fe6a09e667f3bcd)));  // √½
  V rest = hn::BitCast(V::Tag(), hn::Sub(bits, hn::ShiftLeft<fraction_bits>(exponent)));
  V whole = hn::ConvertTo(V::Tag(), exponent);
  whole = select(denormal, whole - V(54), whole);
  V y = multiply_add(V(hn::Log(V::Tag(), rest.raw)), V(1.4426950408889634), whole);
  return with_ends_of_log<double>(y, x, 0);
}

// x log 2 in f64 has 20 bits more than the result.
inline Vector<float> exp2(Vector<float> x) {
  return in_double(x, [](Vector<double> wide) { return exp(wide * Vector<double>(0.6931471805599453)); });
}

// Two powers of two, so that neither overflows nor underflows where the result does not.
inline Vector<double> exp2(Vector<double> x) {
  using V = Vector<double>;
  using Bits = hn::RebindToSigned<V::Tag>;
  auto power_of_two = [](V n) {
    return V(hn::BitCast(V::Tag(), hn::ShiftLeft<52>(hn::ConvertTo(Bits(), (n + V(1023)).raw))));
  };
  V low = select(x > V(-1100), x, V(-1100)), inside = select(low < V(1100), low, V(1100));
  V whole = nearbyint(inside), half = floor(whole * V(0.5));
  V y = exp((inside - whole) * V(0.6931471805599453)) * power_of_two(half) * power_of_two(whole - half);
  return select(x == x, y, x);
}

// The digits of f64 make the logarithms of powers of 10 exact.
inline Vector<float> log10(Vector<float> x) {
  return in_double(x, [](Vector<double> wide) { return log(wide) * Vector<double>(0.4342944819032518); });
}

inline Vector<double> log10(Vector<double> x) {
  return by_lane(x, [](double lane) { return std::log10(lane); });
}

inline Vector<double> tanh(Vector<double> x) {
  using V = Vector<double>;
  V saturated(20);
  V inside = select(x > saturated, saturated, select(x < -saturated, -saturated, x));
  V y = hn::Tanh(V::Tag(), inside.raw);
  return select(x == x, y, x);
}

inline Vector<float> tanh(Vector<float> x) {
  using V = Vector<float>;
  // Beyond this the result is rounded to 1.
  V size = abs(x), inside = select(size < V(10), size, V(10)), e = expm1_within_range(inside + inside);
  return select(x == x, copysign(e / (e + V(2)), x), x);
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

// log x of f64, with an error of 2⁻⁴³ of it; x is no negative number and no denormal one.
inline Vector<double> log_for_f32(Vector<double> x) {
  using V = Vector<double>;
  using Bits = hn::RebindToUnsigned<V::Tag>;
  auto number = [](std::uint64_t bits) { return hn::Set(Bits(), bits); };
  constexpr std::uint64_t one = 0x3ff0000000000000, root = 0x3fe6a09e667f3bcd;  // of 1 and √½
  auto raised = hn::Add(hn::BitCast(Bits(), x.raw), number(one - root));
  // x = 2ⁿ m with m in [√½, √2). A number of the size of 2⁵² has n in its last bits.
  V power = V(hn::BitCast(V::Tag(), hn::Or(hn::ShiftRight<52>(raised), number(0x4330000000000000)))) - V(0x1p52 + 1023);
  V m = hn::BitCast(V::Tag(), hn::Add(hn::And(raised, number(0xfffffffffffff)), number(root)));
  // log m = 2 artanh s
  V s = (m - V(1)) / (m + V(1)), square = s * s;
  constexpr double series[] = {0.3333333333368772, 0.19999999398419133, 0.14285877318819074, 0.11095697195070722,
                               0.0968138928231823};
  V twice = s + s, y = multiply_add(polynomial(square, series) * square, twice, twice);
  y = multiply_add(power, V(0.6931471805599453), y);
  y = select(x < V(infinity<double>), y, x);
  return select(x == V(0), V(-infinity<double>), y);
}

// eˣ of f64, with an error of 2⁻³⁷ of it; beyond the range of f32 a number that is converted to 0 or infinity.
inline Vector<double> exp_for_f32(Vector<double> x) {
  using V = Vector<double>;
  using Bits = hn::RebindToUnsigned<V::Tag>;
  V inside = select(x < V(200), x, V(200));
  inside = select(inside > V(-200), inside, V(-200));
  // The sum has no fraction, and the whole number n in its last bits.
  V sum = multiply_add(inside, V(1.4426950408889634), V(0x1.8p52)), whole = sum - V(0x1.8p52);
  V rest = multiply_add(whole, V(-0.6931471805599453), inside);
  constexpr double series[] = {0.5,
                               0.16666666719028983,
                               0.04166666671901855,
                               0.00833329846980047,
                               0.001388885403439494,
                               0.0001989928557096869,
                               2.485959038941812e-05};
  V y = multiply_add(polynomial(rest, series), rest * rest, rest) + V(1);
  y = hn::BitCast(V::Tag(), hn::Add(hn::BitCast(Bits(), y.raw), hn::ShiftLeft<52>(hn::BitCast(Bits(), sum.raw))));
  return select(x == x, y, x);
}

// |b log |a|| is at most 104 where the result is a number of f32, so its relative error before it is rounded is at most 2⁻³⁵.
// With the functions of full f64 it takes 1.5 times as long.
inline Vector<float> pow(Vector<float> a, Vector<float> b) {
  return in_double(a, b, [](auto base, auto power) {
    using V = Vector<double>;
    V size = abs(base), half = power * V(0.5);
    V y = exp_for_f32(power * log_for_f32(size));
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

}  // namespace reel::detail::inline REEL_TARGET
