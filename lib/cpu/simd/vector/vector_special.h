#pragma once

#include <cmath>

#include "../../../kernels/formulas/special.h"
#include "vector_exponential.h"
#include "vector_trigonometric.h"

// Functions of polynomials fitted for reel: by least squares reweighted towards the minimal maximum of the relative error
// in f32, by Chebyshev's series in f64.

namespace reel::detail::inline REEL_TARGET {

// 2^x for x in [−126, 0], with an error of 8·10⁻⁸.
inline Vector<float> short_exp2(Vector<float> x) {
  using V = Vector<float>;
  constexpr double series[] = {1.0000000717,   0.69314696706,   0.24022119724,
                               0.055507132819, 0.0096755413128, 0.0013276469272};
  WholePart n(x, V(1));
  return n.times_power(polynomial(x - n.whole, series));
}

inline Vector<float> erf(Vector<float> x) {
  using V = Vector<float>;
  V size = abs(x), square = x * x;
  // erf(x) / x as a polynomial in x², on [0, 1].
  constexpr double series[] = {1.1283791657,    -0.37612625824,    0.11283585146,  -0.026853811813,
                               0.0051883274535, -0.00080101915842, 7.8538546123e-5};
  // log₂(1 − erf x), weighted by its effect on erf x, on [1, 4]; beyond that the result is 1.
  constexpr double tail[] = {-0.0037786605448, -1.6123866856,  -0.94386885542,
                             -0.12811093755,   0.021397834973, -0.00166951755};
  V far = V(1) - short_exp2(polynomial(select(size < V(4), size, V(4)), tail));
  V y = select(size < V(1), size * polynomial(square, series), far);
  return select(x == x, copysign(y, x), x);
}

// erf x on [0, 1], to 2⁻⁵⁴ of it.
inline Vector<double> erf_near_zero(Vector<double> x) {
  constexpr double series[] = {1.1283791670955126,      -0.3761263890318375,     0.11283791670954882,
                               -0.026866170645077334,   0.005223977624823223,    -0.0008548326981129666,
                               0.00012055331122299266,  -1.4925595519506043e-05, 1.6461004480962034e-06,
                               -1.6350354461959655e-07, 1.4660051998394848e-08,  -1.1373902296430911e-09,
                               5.958930743134941e-11};
  return x * polynomial(x * x, series);
}

/// e^x² erfc x for x ≥ 0: a polynomial, in (x − 4) / (x + 4), of (1 + 2 x) e^x² erfc x.
inline Vector<double> scaled_erfc(Vector<double> x) {
  using V = Vector<double>;
  constexpr double series[] = {
      1.2329951186255526,     -0.1396211168405629,     0.015379652102620305,    0.06809705425473639,
      -0.10103906603632913,   0.09373283499682628,     -0.0663303658119996,     0.037167515561938515,
      -0.0161977340542423,    0.005031969761432285,    -0.000757773370277741,   -0.0001992555416162786,
      0.00015062234674481447, -2.4403036998954536e-05, -1.1225008755089552e-05, 5.717563626689596e-06,
      3.016107881318932e-07,  -8.346789501461553e-07,  6.258721442256385e-08,   1.1494863135062745e-07,
      -7.764817952397257e-09, -1.3529367067220971e-08, -1.7668021904964841e-09};
  V shifted = x + V(4), divisor = x + x + V(1), inverse = V(1) / (shifted * divisor);
  V product = polynomial((x - V(4)) * divisor * inverse, series), quotient = product * (shifted * inverse);
  return multiply_add(multiply_add(-quotient, divisor, product), shifted * inverse, quotient);
}

/// erfc x on [0, 26], with an error of 2⁻⁵¹.
inline Vector<double> erfc_of_positive(Vector<double> x) {
  Vector<double> high = leading_bits(x, 0xfffffffff8000000);  // its square is exact
  return exp_of_sum(-(high * high), (high - x) * (high + x)) * scaled_erfc(x);
}

inline Vector<double> erf(Vector<double> x) {
  using V = Vector<double>;
  V size = abs(x), inside = select(size < V(6), size, V(6));
  V y = select(size < V(1), erf_near_zero(size), V(1) - erfc_of_positive(inside));
  return select(x == x, copysign(y, x), x);
}

inline Vector<double> erfc(Vector<double> x) {
  using V = Vector<double>;
  V size = abs(x), far = erfc_of_positive(select(size < V(26), size, V(26)));
  V y = select(size < V(0.5), V(1) - erf_near_zero(x), select(x < V(0), V(2) - far, far));
  return patched(x < V(26), y, x, [](double lane) { return std::erfc(lane); });
}

// The form of f64, to 2⁻²⁸, in (x − 3) / (x + 3).
inline Vector<float> erfc(Vector<float> single) {
  return in_double(single, [](auto x) {
    using V = Vector<double>;
    constexpr double series[] = {1.253008059421,    -0.1356211505598,    -0.04756244202538,  0.1296466921446,
                                 -0.1192700511949,  0.06829450503781,    -0.02380347297792,  0.002565470269936,
                                 0.002012168045418, -0.0007652317268115, -0.0002639741876587};
    V size = abs(x), inside = select(size < V(11), size, V(11)), shifted = inside + V(3),
      divisor = inside + inside + V(1), inverse = V(1) / (shifted * divisor);
    V far =
        exp_for_f32(-(inside * inside)) * polynomial((inside - V(3)) * divisor * inverse, series) * (shifted * inverse);
    return select(x == x, select(x < V(0), V(2) - far, far), x);
  });
}

// log₂ of the probability as a polynomial on [0, 5.5], weighted by its effect on gelu; beyond that the result is 0.
inline formulas::NormalTail<Vector<float>> normal_tail(Vector<float> z) {
  using V = Vector<float>;
  constexpr double series[] = {-0.99999989638,  -1.1511109445,     -0.45915313897,   -0.052691137228,
                               0.0073893033789, -0.00042125437161, -5.3898580648e-5, 8.4696289577e-6};
  auto near = z < V(5.5);
  return {select(near, short_exp2(polynomial(select(near, z, V(0)), series)), V(0)),
          V(0.3989422804014327) * exp(V(-0.5) * z * z)};
}

inline formulas::NormalTail<Vector<double>> normal_tail(Vector<double> z) {
  using V = Vector<double>;
  V x = z * V(0.7071067811865476), inside = select(x < V(26), x, V(26));
  V power = select(x < V(26), exp_of_sum(-(inside * inside), V(0)), V(0));
  return {V(0.5) * (power * scaled_erfc(inside)), V(0.3989422804014327) * power};
}

inline Vector<float> erfinv(Vector<float> y) {
  using V = Vector<float>;
  V size = abs(y);
  V distance = -log((V(1) - size) * (V(1) + size)), root = sqrt(distance);
  V ratio = select(distance < V(5), formulas::ErfinvCentre()(distance), formulas::ErfinvTail()(root));
  V x = select(size == V(1), V(infinity<double>), ratio * size);
  // The logarithm is NaN beyond 1 and for NaN.
  return copysign(x, y);
}

// The scalar formula; the inverse is taken from erf where that loses fewer digits, else from erfc.
inline Vector<double> erfinv(Vector<double> y) {
  using V = Vector<double>;
  V size = abs(y), distance = -log_for_f32((V(1) - size) * (V(1) + size)), ratio = formulas::ErfinvCentre()(distance);
  if (!hn::AllTrue(V::Tag(), distance < V(5))) {
    V root = sqrt(distance);
    V tail = select(root < V(4), formulas::ErfinvTail()(root), formulas::ErfinvEnd()(root));
    ratio = select(distance < V(5), ratio, tail);
  }
  V x = size * ratio, error = select(size < V(0.7), erf_near_zero(x) - size, (V(1) - size) - erfc_of_positive(x));
  V step = error * V(0.8862269254527580) * exp_for_f32(x * x);
  x = select(size < V(1), x - step / (V(1) + x * step), V(infinity<double>));
  return copysign(select(size <= V(1), x, V(std::numeric_limits<double>::quiet_NaN())), y);
}

// log Γ(x) for x > 0, to an absolute error of some 10⁻¹⁴: Stirling's series from 8 on, Γ(x + 8) / (x (x + 1) …) below.
inline Vector<double> lgamma_of_positive(Vector<double> x) {
  using V = Vector<double>;
  auto small = x < V(8);
  V product = x;
  for (int k = 1; k < 8; ++k) product = product * (x + V(k));
  V z = select(small, x + V(8), x), reciprocal = V(1) / z;
  constexpr double stirling[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156};
  constexpr double half_log_of_two_pi = 0.9189385332046727;
  V series = polynomial(reciprocal * reciprocal, stirling) * reciprocal + V(half_log_of_two_pi);
  V y = multiply_add(z - V(0.5), log(z), series - z);
  return y - log(select(small, product, V(1)));
}

inline Vector<float> lgamma(Vector<float> single) {
  return in_double(single, [](auto x) {
    using V = Vector<double>;
    V size = abs(x), y = lgamma_of_positive(size);
    if (!hn::AllFalse(V::Tag(), x < V(0))) {
      // Γ(x) Γ(−x) = −π / (x sin πx)
      constexpr double pi = 3.141592653589793;
      V sine = sin((size - nearbyint(size)) * V(pi));
      y = select(x < V(0), log(V(pi) / (size * abs(sine))) - y, y);
    }
    y = select(hn::Or(x == V(1), x == V(2)), V(0), y);
    return select(size == V(infinity<double>), size, y);
  });
}

inline Vector<double> lgamma(Vector<double> x) {
  // The plain function writes a global variable, so the reentrant one is called.
  return by_lane(x, [](double lane) {
    int sign;
    return ::lgamma_r(lane, &sign);
  });
}

}  // namespace reel::detail::inline REEL_TARGET
