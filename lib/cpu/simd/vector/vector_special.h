#pragma once

#include <cmath>

#include "../../../kernels/formulas/special.h"
#include "vector_exponential.h"
#include "vector_trigonometric.h"

// Functions whose f32 forms are polynomials fitted for reel, by least squares reweighted towards the minimal maximum of
// the relative error; the f64 forms are the C library's.

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

inline Vector<double> erf(Vector<double> x) {
  return by_lane(x, [](double lane) { return std::erf(lane); });
}

template <class T>
Vector<T> erfc(Vector<T> x) {
  return by_lane(x, [](T lane) { return std::erfc(lane); });
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

inline Vector<double> erfinv(Vector<double> y) {
  return by_lane(y, [](double lane) { return formulas::erfinv(lane); });
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
