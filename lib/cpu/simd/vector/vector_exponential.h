#pragma once

#include <cmath>

#include <hwy/contrib/math/math-inl.h>

#include "../../../kernels/formulas/vocabulary.h"
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

/// e^(x + low) for |x| < 708 and a `low` below 10⁻⁴, with an error of 0.6 units in the last place and low's.
inline Vector<double> exp_of_sum(Vector<double> x, Vector<double> low) {
  using V = Vector<double>;
  using Bits = hn::RebindToUnsigned<V::Tag>;
  // The sum has no fraction, and the whole number n in its last bits.
  V sum = multiply_add(x, V(1.4426950408889634), V(0x1.8p52)), whole = sum - V(0x1.8p52);
  // The first part of log 2 has as few bits as make its product with n exact.
  V part = multiply_add(whole, V(-0x1.62e42fefa38p-1), x),
    correction = multiply_add(whole, V(-0x1.ef35793c7673p-45), low);
  V rest = part + correction, lost = (part - rest) + correction;
  // (e^r − 1 − r) / r² to 2⁻⁵⁷ of it, for |r| below 0.3467.
  constexpr double series[] = {0.5,
                               0.1666666666666667,
                               0.04166666666666668,
                               0.008333333333326119,
                               0.0013888888888879054,
                               0.0001984126987487566,
                               2.4801587336499025e-05,
                               2.7557255330683724e-06,
                               2.755726321849137e-07,
                               2.5105245845597674e-08,
                               2.0918160101597146e-09};
  V linear = V(1) + rest, small = multiply_add(polynomial(rest, series), rest * rest, lost);
  V y = linear + (((V(1) - linear) + rest) + small);
  return hn::BitCast(V::Tag(), hn::Add(hn::BitCast(Bits(), y.raw), hn::ShiftLeft<52>(hn::BitCast(Bits(), sum.raw))));
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

// (e^r − 1 − r) / r² for |r| of at most log 2 / 2.
inline constexpr double exponential_series[] = {0.49999993373, 0.16666519523, 0.04166840109, 0.0083688511541,
                                                0.0013814320587};

/// e^(x − n log 2) − 1, with an error of 4·10⁻⁹ relative to e^(x − n log 2) before it is rounded, where n is `whole` and the
/// difference at most log 2 / 2.
inline Vector<float> expm1_of_rest(Vector<float> x, Vector<float> whole) {
  using V = Vector<float>;
  // The first part of log 2 has as few bits as make its product with n exact.
  V rest = multiply_add(whole, V(-1.428606765330187e-6), multiply_add(whole, V(-0.693145751953125), x));
  return multiply_add(polynomial(rest, exponential_series), rest * rest, rest);
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

/// x = 2^power m with m in [√½, √2), for x that are no negative numbers and no denormal ones.
struct PowerOfTwo {
  Vector<double> power, m;

  explicit PowerOfTwo(Vector<double> x) : power(x), m(x) {
    using V = Vector<double>;
    using Bits = hn::RebindToUnsigned<V::Tag>;
    auto number = [](std::uint64_t bits) { return hn::Set(Bits(), bits); };
    constexpr std::uint64_t one = 0x3ff0000000000000, root = 0x3fe6a09e667f3bcd;  // of 1 and √½
    auto raised = hn::Add(hn::BitCast(Bits(), x.raw), number(one - root));
    // A number of the size of 2⁵² has the power in its last bits.
    power = V(hn::BitCast(V::Tag(), hn::Or(hn::ShiftRight<52>(raised), number(0x4330000000000000)))) - V(0x1p52 + 1023);
    m = hn::BitCast(V::Tag(), hn::Add(hn::And(raised, number(0xfffffffffffff)), number(root)));
  }
  /// For denormal x, too.
  static PowerOfTwo of_any(Vector<double> x) {
    using V = Vector<double>;
    auto denormal = x < V(std::numeric_limits<double>::min());
    PowerOfTwo parts(select(denormal, x * V(0x1p54), x));
    parts.power = select(denormal, parts.power - V(54), parts.power);
    return parts;
  }
};

/// x without its last bits: only those of `mask` are kept.
inline Vector<double> leading_bits(Vector<double> x, std::uint64_t mask) {
  using Bits = hn::RebindToUnsigned<Vector<double>::Tag>;
  return hn::BitCast(Vector<double>::Tag(), hn::And(hn::BitCast(Bits(), x.raw), hn::Set(Bits(), mask)));
}

inline Vector<double> log2(Vector<double> x) {
  using V = Vector<double>;
  PowerOfTwo parts = PowerOfTwo::of_any(x);
  V y = multiply_add(V(hn::Log(V::Tag(), parts.m.raw)), V(1.4426950408889634), parts.power);
  return with_ends_of_log<double>(y, x, 0);
}

/// 2^x for |x| < 126: 2^n e^(f log 2) of the whole number n nearest to x and the rest f, with the product's rounding error.
inline Vector<float> exp2_within_range(Vector<float> x) {
  using V = Vector<float>;
  WholePart n(x, V(1));
  V f = x - n.whole, rest = f * V(0.693147182464599609375);
  V low = multiply_add(f, V(0.693147182464599609375), V(0) - rest) + f * V(-1.9046542121259336e-9);
  return n.times_power(multiply_add(polynomial(rest, exponential_series), rest * rest, low) + rest + V(1));
}

inline Vector<float> exp2(Vector<float> x) {
  using V = Vector<float>;
  auto within = abs(x) < V(126);
  if (hn::AllTrue(V::Tag(), within)) [[likely]]
    return exp2_within_range(x);
  // x log 2 in f64 has 20 bits more than the result.
  V y = in_double(x, [](Vector<double> wide) { return exp(wide * Vector<double>(0.6931471805599453)); });
  return select(within, exp2_within_range(select(within, x, V(0))), y);
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

// log m = f − f² / 2 + r is split in two, of which the first has as few bits as make its product with log₁₀ e's first
// part exact. So are those of the power and log₁₀ 2. The logarithms of powers of 10 are whole.
inline Vector<double> log10(Vector<double> x) {
  using V = Vector<double>;
  PowerOfTwo parts = PowerOfTwo::of_any(x);
  V f = parts.m - V(1), s = f / (f + V(2)), square = s * s, half = V(0.5) * f * f;
  // (2 artanh s − 2 s) / s³ to 2⁻⁵¹ of it, for |s| below 0.1716.
  constexpr double series[] = {0.666666666666667,   0.3999999999989881, 0.28571428626261336, 0.22222211091734861,
                               0.18182892052552996, 0.1533163001129441, 0.14617522903566196};
  V rest = s * multiply_add(polynomial(square, series), square, half);
  V high = leading_bits(f - half, 0xffffffff00000000), low = (f - high) - half + rest;
  V whole = parts.power * V(0x1.34413509f6p-2), part = high * V(0x1.bcb7b152p-2), sum = whole + part;
  V small = multiply_add(low, V(0x1.bcb7b152p-2), (low + high) * V(0x1.b9438ca9aadd5p-36));
  small = multiply_add(parts.power, V(0x1.9fef311f12b36p-42), small) + ((whole - sum) + part);
  return with_ends_of_log<double>(sum + small, x, 0);
}

// x / (1 − x) is 2ⁿ times a number near 1, whose logarithm is 2 artanh of the difference over the sum of x and
// 2ⁿ (1 − x): where n is 0, of 2x − 1, without a loss of digits.
template <class T>
Vector<T> logit(Vector<T> x) {
  using V = Vector<T>;
  using Bits = hn::RebindToSigned<typename V::Tag>;
  using Integer = hn::TFromD<Bits>;
  constexpr int fraction_bits = std::numeric_limits<T>::digits - 1;
  auto bits = [](V number) { return hn::BitCast(Bits(), number.raw); };
  V rest = V(1) - x;
  auto half = hn::Set(Bits(), Integer{1} << (fraction_bits - 1));
  auto n = hn::ShiftRight<fraction_bits>(hn::Add(hn::Sub(bits(x), bits(rest)), half));
  V power = hn::ConvertTo(typename V::Tag(), n);
  V scaled = hn::BitCast(typename V::Tag(), hn::Add(bits(rest), hn::ShiftLeft<fraction_bits>(n)));
  V difference = select(power == V(0), (x - V(0.5)) + (x - V(0.5)), x - scaled);
  V s = difference / (x + scaled), square = s * s, y = s;
  // (2 artanh s − 2 s) / s³ for |s| below 0.2007, to 2⁻²⁰ of it in f32.
  if constexpr (sizeof(T) == 4) {
    constexpr double series[] = {0.6666671479, 0.39978634355, 0.29967692805};
    y = multiply_add(polynomial(square, series) * square, s, s + s);
    y = multiply_add(power, V(0.693145751953125), multiply_add(power, V(1.428606765330187e-6), y));
  } else {
    constexpr double series[] = {0.6666666666666666,  0.40000000000008257, 0.28571428567136176, 0.2222222307116973,
                                 0.18181735865364493, 0.15388937130755376, 0.13208362154362246, 0.1361925071367565};
    y = multiply_add(polynomial(square, series) * square, s, s + s);
    y = multiply_add(power, V(0x1.62e42fefa38p-1), multiply_add(power, V(0x1.ef35793c7673p-45), y));
  }
  auto inside = hn::And(x >= V(static_cast<double>(std::numeric_limits<T>::min())), x < V(1));
  return patched(inside, y, x, [](T lane) { return formulas::logit(lane); });
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
  auto [power, m] = PowerOfTwo(x);
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

/// The power of a base from that of its size: with the base's sign where the exponent is odd, NaN where it has a fraction.
inline Vector<double> with_sign_of_power(Vector<double> y, Vector<double> base, Vector<double> power) {
  using V = Vector<double>;
  if (hn::AllTrue(V::Tag(), base > V(0))) return y;
  V half = power * V(0.5);
  auto whole = floor(power) == power;
  auto odd = hn::AndNot(hn::Eq(floor(half).raw, half.raw), whole);
  auto no_real = hn::And(hn::And(base<V(0), base> V(-infinity<double>)), hn::Not(whole));
  return select(no_real, V(std::numeric_limits<double>::quiet_NaN()), select(odd, copysign(y, base), y));
}

// |b log |a|| is at most 104 where the result is a number of f32, so its relative error before it is rounded is at most 2⁻³⁵.
// With the functions of full f64 it takes 1.5 times as long.
inline Vector<float> pow(Vector<float> a, Vector<float> b) {
  return in_double(a, b, [](auto base, auto power) {
    using V = Vector<double>;
    V size = abs(base);
    V y = with_sign_of_power(exp_for_f32(power * log_for_f32(size)), base, power);
    // −1 to an infinite power is 1.
    auto one = hn::Or(base == V(1), hn::And(size == V(1), abs(power) == V(infinity<double>)));
    return select(hn::Or(one, power == V(0)), V(1), y);
  });
}

/// A number as the sum of two, of which the second is below the first's last place.
struct TwoParts {
  Vector<double> high, low;
};

// 2 artanh s + power log 2 to 2⁻⁶⁴ of it, where s = (m − 1) / (m + 1) is 2^−power x's.
inline TwoParts log_in_two_parts(Vector<double> x) {
  using V = Vector<double>;
  auto [power, m] = PowerOfTwo(x);
  V f = m - V(1), divisor = m + V(1), inverse = V(1) / divisor, s = f * inverse;
  V s_low = (multiply_add(-s, divisor, f) - s * (m - (divisor - V(1)))) * inverse;
  V square = s * s, square_low = multiply_add(s, s, -square) + (s + s) * s_low;
  V cube = square * s, cube_low = multiply_add(square, s, -cube) + multiply_add(square, s_low, square_low * s);
  // s³ has the factor 2/3 + s² (…), in two parts, of which the second term is good to 2⁻⁵⁰.
  constexpr double series[] = {0.4000000000000003, 0.28571428571337937, 0.22222222271335484, 0.18181808212747697,
                               0.1538557714152483, 0.13285884659622724, 0.12914463904095583};
  V third(2.0 / 3), more = multiply_add(square_low, V(0.4), polynomial(square, series) * square), factor = third + more;
  V factor_low = ((third - factor) + more) + V(3.700743415417188e-17), term = cube * factor;
  V small =
      multiply_add(cube, factor, -term) + multiply_add(cube_low, factor, multiply_add(cube, factor_low, s_low + s_low));
  V whole = power * V(0x1.62e42fefa38p-1), twice = s + s, sum = whole + twice, all = sum + term;
  small = multiply_add(power, V(0x1.ef35793c7673p-45), small) + ((whole - sum) + twice) + ((sum - all) + term);
  V high = all + small;
  return {high, (all - high) + small};
}

// Products that are rounded once keep the digits of |b log |a||, which are as many more as it is large.
inline Vector<double> pow(Vector<double> a, Vector<double> b) {
  using V = Vector<double>;
  auto exact = [](double x, double y) { return std::pow(x, y); };
  if constexpr (!multiply_add_is_fused) return by_lane(a, b, exact);
  V size = abs(a);
  auto [log_high, log_low] = log_in_two_parts(size);
  V high = b * log_high, low = multiply_add(b, log_high, -high) + b * log_low;
  auto ordinary = hn::And(has_ordinary_log(size), abs(high) < V(700)), vanishes = hn::And(a == V(0), b > V(0));
  V y = select(vanishes, V(0), exp_of_sum(high, low));
  return patched(hn::Or(ordinary, vanishes), with_sign_of_power(y, a, b), a, b, exact);
}

}  // namespace reel::detail::inline REEL_TARGET
