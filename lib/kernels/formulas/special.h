#pragma once

#include <cstddef>

#include "row.h"

namespace reel::formulas {
inline namespace REEL_TARGET {

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

// ψ(x) of f64: its asymptotic series from 10 on, ψ(x + 10) − Σ 1 / (x + k) below, ψ(1 − x) − π / tan(πx) left of 0.
struct Digamma {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::abs, std::copysign, std::cos, std::floor, std::log, std::nearbyint, std::sin;
    constexpr double pi = 3.141592653589793, infinity = HUGE_VAL;
    auto negative = x < V(0);
    V mirrored = select(negative, V(1) - x, x), start = select(mirrored < V(10), mirrored, V(1));
    // The sum of the reciprocals, accumulated as one fraction.
    V above = V(1), below = start;
    for (int k = 1; k < 10; ++k) {
      V next = start + V(k);
      above = above * next + below;
      below = below * next;
    }
    V z = select(mirrored < V(10), mirrored + V(10), mirrored), reciprocal = V(1) / z, square = reciprocal * reciprocal;
    constexpr double series[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
    V rest = V(series[6]);
    for (int k = 6; k-- > 0;) rest = rest * square + V(series[k]);
    V y = log(z) - (rest * square + reciprocal * V(0.5));
    y = select(mirrored < V(10), y - above / below, y);
    V angle = (x - nearbyint(x)) * V(pi);
    y = select(negative, y - V(pi) * cos(angle) / sin(angle), y);
    // The poles: NaN at negative integers, where the limits differ in sign; infinite at ±0.
    y = select(negative, select(x == floor(x), V(NAN), y), y);
    y = select(x == V(0), copysign(V(infinity), -x), y);
    return select(x == V(infinity), x, y);
  }
};

}  // namespace REEL_TARGET
}  // namespace reel::formulas

namespace reel::detail {
inline namespace REEL_TARGET {
namespace kernel_lists {

// clang-format off
using Special = KernelList<
    Row<Erf, floating, dear>,
    Row<Erfinv, floating, slow>,
    Row<Lgamma, floating, slow>,
    Row<Digamma, floating, slow>>;
// clang-format on

}  // namespace kernel_lists
}  // namespace REEL_TARGET
}  // namespace reel::detail
