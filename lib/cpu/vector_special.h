#pragma once

#include <cmath>

#include "vector_exponential.h"
#include "vector_trigonometric.h"

// Functions whose f32 forms are polynomials fitted for reel, by least squares reweighted towards the least maximal
// relative error; the f64 forms are the C library's.

namespace reel::detail {
inline namespace REEL_TARGET {

// 2^x for x in [−126, 0], to 8·10⁻⁸.
inline Vector<float> short_exp2(Vector<float> x) {
  using V = Vector<float>;
  using Bits = hn::RebindToSigned<V::Tag>;
  constexpr double series[] = {1.0000000717,   0.69314696706,   0.24022119724,
                               0.055507132819, 0.0096755413128, 0.0013276469272};
  V whole = nearbyint(x), part = polynomial(x - whole, series);
  auto exponent = hn::ShiftLeft<23>(hn::ConvertTo(Bits(), whole.raw));
  return hn::BitCast(V::Tag(), hn::Add(hn::BitCast(Bits(), part.raw), exponent));
}

inline Vector<float> erf(Vector<float> x) {
  using V = Vector<float>;
  V size = abs(x), square = x * x;
  // erf(x) / x in x², on [0, 1].
  constexpr double series[] = {1.1283791657,    -0.37612625824,    0.11283585146,  -0.026853811813,
                               0.0051883274535, -0.00080101915842, 7.8538546123e-5};
  // log₂(1 − erf x), weighted by what it does to erf x, on [1, 4]; behind that the result is 1.
  constexpr double tail[] = {-0.0037786605448, -1.6123866856,  -0.94386885542,
                             -0.12811093755,   0.021397834973, -0.00166951755};
  V far = V(1) - short_exp2(polynomial(select(size < V(4), size, V(4)), tail));
  V y = select(size < V(1), size * polynomial(square, series), far);
  return select(x == x, copysign(y, x), x);
}

inline Vector<double> erf(Vector<double> x) {
  return by_lane(x, [](double lane) { return std::erf(lane); });
}

// erfinv(y) / y in −log(1 − y²) on [0, 5], its root in [√5, 4.05] and in [3.9, 6.1].
inline constexpr double erfinv_centre[] = {1.5014093593,     0.24664028616,    -0.00417738678,   -0.0012527418822,
                                           0.00021834443855, -4.9633456122e-6, -3.4627045289e-6, 4.6617017345e-7,
                                           2.3232625582e-8,  -8.7910209364e-9};
inline constexpr double erfinv_tail[] = {2.8329769528,     1.0016740831,    0.0094372172103,
                                         -0.0076231979605, 0.0057512984947, -0.0036686551305,
                                         0.001322906305,   9.4916211327e-5, -0.00018147042645};
inline constexpr double erfinv_end[] = {4.849906674,       1.0102997234,   -0.00014281369614,
                                        -0.00021182641062, 8.486451124e-5, -2.3203103065e-5};

inline Vector<float> erfinv(Vector<float> y) {
  using V = Vector<float>;
  V size = abs(y);
  V distance = -log((V(1) - size) * (V(1) + size)), root = sqrt(distance);
  V ratio = select(distance < V(5), polynomial(distance - V(2.5), erfinv_centre), polynomial(root - V(3), erfinv_tail));
  V x = select(size == V(1), V(infinity<double>), ratio * size);
  // The logarithm is NaN beyond 1 and for NaN.
  return copysign(x, y);
}

// The polynomials' 7 digits, and one step of Halley's method, which triples them.
inline double erfinv(double y) {
  auto value = [](double x, const auto& coefficients) {
    double sum = 0;
    for (std::size_t i = std::size(coefficients); i-- > 0;) sum = sum * x + coefficients[i];
    return sum;
  };
  double size = std::abs(y);
  if (!(size < 1)) return size == 1 ? std::copysign(infinity<double>, y) : std::numeric_limits<double>::quiet_NaN();
  double distance = -std::log((1 - size) * (1 + size)), root = std::sqrt(distance);
  double x = size * (distance < 5 ? value(distance - 2.5, erfinv_centre)
                     : root < 4   ? value(root - 3, erfinv_tail)
                                  : value(root - 5, erfinv_end));
  double error = size < 0.5 ? std::erf(x) - size : (1 - size) - std::erfc(x);
  double step = error * 0.8862269254527580 * std::exp(x * x);  // error / erf'(x)
  return std::copysign(x - step / (1 + x * step), y);
}

inline Vector<double> erfinv(Vector<double> y) {
  return by_lane(y, [](double lane) { return erfinv(lane); });
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
  // The plain function writes a global variable.
  return by_lane(x, [](double lane) {
    int sign;
    return ::lgamma_r(lane, &sign);
  });
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
