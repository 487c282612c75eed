#pragma once

#include "vocabulary.h"

namespace reel::formulas {
inline namespace REEL_TARGET {

struct Erf {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::erf;
    return erf(x);
  }
};
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
    // The sum of the reciprocals as one fraction.
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
    // The poles: of both signs but for ±0.
    y = select(negative, select(x == floor(x), V(NAN), y), y);
    y = select(x == V(0), copysign(V(infinity), -x), y);
    return select(x == V(infinity), x, y);
  }
};

}  // namespace REEL_TARGET
}  // namespace reel::formulas
