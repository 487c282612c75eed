#pragma once

#include <cstddef>

#include "vocabulary.h"

namespace reel::formulas::inline REEL_TARGET {

/// c₀ + c₁ x + c₂ x² + …
template <class T, std::size_t n>
REEL_HOST_DEVICE T polynomial(T x, const double (&coefficients)[n]) {
  T sum(coefficients[n - 1]);
  for (std::size_t i = n - 1; i-- > 0;) sum = sum * x + T(coefficients[i]);
  return sum;
}

struct Erf {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::erf;
    return erf(x);
  }
};
struct Erfc {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::erfc;
    return erfc(x);
  }
};
// erfinv(y) / y as polynomials in distance = −log(1 − y²) on [0, 5], in its root in [√5, 4.05], and in its root in
// [3.9, 6.1].
struct ErfinvCentre {
  template <class V>
  REEL_HOST_DEVICE V operator()(V distance) const {
    constexpr double series[] = {1.5014093593,     0.24664028616,    -0.00417738678,   -0.0012527418822,
                                 0.00021834443855, -4.9633456122e-6, -3.4627045289e-6, 4.6617017345e-7,
                                 2.3232625582e-8,  -8.7910209364e-9};
    return polynomial(distance - V(2.5), series);
  }
};
struct ErfinvTail {
  template <class V>
  REEL_HOST_DEVICE V operator()(V root) const {
    constexpr double series[] = {2.8329769528,     1.0016740831,   0.0094372172103, -0.0076231979605, 0.0057512984947,
                                 -0.0036686551305, 0.001322906305, 9.4916211327e-5, -0.00018147042645};
    return polynomial(root - V(3), series);
  }
};
struct ErfinvEnd {
  template <class V>
  REEL_HOST_DEVICE V operator()(V root) const {
    constexpr double series[] = {4.849906674,       1.0102997234,   -0.00014281369614,
                                 -0.00021182641062, 8.486451124e-5, -2.3203103065e-5};
    return polynomial(root - V(5), series);
  }
};

// The polynomials' 7 digits, and one step of Halley's method, which triples them.
REEL_HOST_DEVICE inline double erfinv(double y) {
  double size = std::abs(y);
  if (!(size < 1)) return size == 1 ? std::copysign(HUGE_VAL, y) : static_cast<double>(NAN);
  double distance = -std::log((1 - size) * (1 + size)), root = std::sqrt(distance);
  double x = size * (distance < 5 ? ErfinvCentre()(distance) : root < 4 ? ErfinvTail()(root) : ErfinvEnd()(root));
  double error = size < 0.5 ? std::erf(x) - size : (1 - size) - std::erfc(x);
  double step = error * 0.8862269254527580 * std::exp(x * x);  // error / erf'(x)
  return std::copysign(x - step / (1 + x * step), y);
}
REEL_HOST_DEVICE inline float erfinv(float y) { return static_cast<float>(erfinv(static_cast<double>(y))); }

struct Erfinv {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    return erfinv(x);
  }
};
struct Lgamma {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::lgamma;
    return lgamma(x);
  }
};

// ψ(x) of f64 for x > 0: its asymptotic series from 10 on, ψ(x + 10) − Σ 1 / (x + k) below.
struct DigammaOfPositive {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::log;
    V start = select(x < V(10), x, V(1));
    // The sum of the reciprocals, accumulated as one fraction.
    V above = V(1), below = start;
    for (int k = 1; k < 10; ++k) {
      V next = start + V(k);
      above = above * next + below;
      below = below * next;
    }
    V z = select(x < V(10), x + V(10), x), reciprocal = V(1) / z, square = reciprocal * reciprocal;
    constexpr double series[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
    V rest = V(series[6]);
    for (int k = 6; k-- > 0;) rest = rest * square + V(series[k]);
    V y = log(z) - (rest * square + reciprocal * V(0.5));
    return select(x < V(10), y - above / below, y);
  }
};
// Left of 0 it is ψ(1 − x) − π / tan(πx).
struct Digamma {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::copysign, std::cos, std::floor, std::nearbyint, std::sin;
    constexpr double pi = 3.141592653589793, infinity = HUGE_VAL;
    auto negative = x < V(0);
    V y = DigammaOfPositive()(select(negative, V(1) - x, x)), angle = (x - nearbyint(x)) * V(pi);
    y = select(negative, y - V(pi) * cos(angle) / sin(angle), y);
    // The poles: NaN at negative integers, where the limits differ in sign; infinite at ±0.
    y = select(negative, select(x == floor(x), V(NAN), y), y);
    y = select(x == V(0), copysign(V(infinity), -x), y);
    return select(x == V(infinity), x, y);
  }
};

/// c₀ + c₁ T₁(x) + c₂ T₂(x) + … of Chebyshev polynomials, by Clenshaw's recurrence.
template <class T, std::size_t n>
REEL_HOST_DEVICE T chebyshev_series(T x, const double (&coefficients)[n]) {
  T next(0), sum(coefficients[n - 1]), twice = x + x;
  for (std::size_t i = n - 1; i-- > 1;) {
    T last = sum;
    sum = twice * sum - next + T(coefficients[i]);
    next = last;
  }
  return x * sum - next + T(coefficients[0]);
}

// The Bessel functions Iₙ for n = 0 and 1: e^−x Iₙ(x) / xⁿ on [0, 8] as a Chebyshev series in x / 4 − 1, and √x e^−x
// Iₙ(x) beyond in 16 / x − 1. e^x is multiplied by as two factors, since it overflows before Iₙ.
struct I0 {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::abs, std::exp, std::sqrt;
    constexpr double centre[] = {
        0.33839763720473804,    -0.3046826723431984,     0.17162090152220878,    -0.094901097048047644,
        0.049305284239670708,   -0.023737414805899469,   0.010546460394594998,   -0.0043243099950505759,
        0.0016394756169413358,  -0.00057637557453858237, 0.00018850288509584166, -5.7541950100821037e-5,
        1.6448448070728897e-5,  -4.4167383584587506e-6,  1.1173875391201037e-6,  -2.6707938539406117e-7,
        6.0469950225419189e-8,  -1.300025009986248e-8,   2.6598237246823867e-9,  -5.1897956016352629e-10,
        9.6758090353732369e-11, -1.7268262914415557e-11, 2.9550526631296398e-12, -4.8564467831119295e-13,
        7.6761854986049356e-14, -1.1685332877993452e-14, 1.715391285555133e-15,  -2.4312798465479547e-16,
        3.3307945188222381e-17, -4.4153416464793394e-18};
    constexpr double tail[] = {
        0.40224520550705442,     0.0033691164782556941,   6.889758346916824e-5,    2.8913705208347565e-6,
        2.0489185894690637e-7,   2.2666689904981781e-8,   3.3962320257083863e-9,   4.9406023882249696e-10,
        1.1889147107846438e-11,  -3.1499165279632414e-11, -1.3215811840447713e-11, -1.7941785315068061e-12,
        7.1801244513836662e-13,  3.8527783827421427e-13,  1.5400862175214098e-14,  -4.1505693472872221e-14,
        -9.5548466988283076e-15, 3.8116806693526224e-15,  1.7725601330565264e-15,  -3.4254856196772191e-16,
        -2.8276239805165835e-16, 3.4612228676974611e-17,  4.46562142029676e-17,    -4.8305044859441821e-18,
        -7.233180487874754e-18};
    V size = abs(x), root_of_power = exp(size * V(0.5));
    auto near = size <= V(8);
    V inner = chebyshev_series(select(near, size * V(0.25) - V(1), V(0)), centre);
    V outer = chebyshev_series(select(near, V(0), V(16) / size - V(1)), tail) / sqrt(size);
    return select(size == V(HUGE_VAL), size, root_of_power * select(near, inner, outer) * root_of_power);
  }
};
struct I1 {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::abs, std::copysign, std::exp, std::sqrt;
    constexpr double centre[] = {
        0.12629359322181683,    -0.17641651835783406,    0.1026436586898471,     -0.052945981208094991,
        0.024726449030626517,   -0.010564084894626198,   0.0041564229443128882,  -0.0015135724506312531,
        0.00051228595616857577, -0.00016176081582589675, 4.7815651075500542e-5,  -1.3273163656039436e-5,
        3.4702513081376785e-6,  -8.5687202646954547e-7,  2.0032947535521353e-7,  -4.4450591287963281e-8,
        9.3815373864957718e-9,  -1.8872497517228293e-9,  3.625590281552117e-10,  -6.6634897235020277e-11,
        1.1736186298890902e-11, -1.9839743977649437e-12, 3.2237933659455747e-13, -5.0421855047279117e-14,
        7.6006842947354069e-15, -1.1055969477353863e-15, 1.5536319577362005e-16, -2.1114212143581661e-17,
        2.7779141127610464e-18};
    constexpr double tail[] = {
        0.38928811750914006,     -0.0097610974913614684,  -0.00011058893876262372, -3.8825648088776904e-6,
        -2.5122362378702089e-7,  -2.6314688468895195e-8,  -3.835380385964237e-9,   -5.5897434621965838e-10,
        -1.8974958123505412e-11, 3.2526035830154882e-11,  1.4125807436613781e-11,  2.0356285441470895e-12,
        -7.1985517762459085e-13, -4.0835511110921973e-13, -2.1015418427726643e-14, 4.2724400167119514e-14,
        1.0420276984128803e-14,  -3.8144030724370078e-15, -1.8803547755107824e-15, 3.3082023109209283e-16,
        2.9626289976459501e-16,  -3.209525921993424e-17,  -4.6503053684893583e-17, 4.4143483230717079e-18,
        7.5172963108421048e-18};
    V size = abs(x), root_of_power = exp(size * V(0.5));
    auto near = size <= V(8);
    V inner = chebyshev_series(select(near, size * V(0.25) - V(1), V(0)), centre) * size;
    V outer = chebyshev_series(select(near, V(0), V(16) / size - V(1)), tail) / sqrt(size);
    V y = root_of_power * select(near, inner, outer) * root_of_power;
    return copysign(select(size == V(HUGE_VAL), size, y), x);
  }
};

}  // namespace reel::formulas::inline REEL_TARGET
