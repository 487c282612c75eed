#pragma once

#include "integer.h"
#include "vocabulary.h"

namespace reel::formulas::inline REEL_TARGET {

struct Neg {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    return static_cast<V>(-x);
  }
};
struct Abs {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::abs;
    return abs(x);
  }
};
struct Sign {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    return select(x > V(0), V(1), select(x < V(0), V(-1), select(x == V(0), V(0), x)));  // keeps NaN
  }
};
struct Square {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    return static_cast<V>(x * x);
  }
};
struct Reciprocal {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    return V(1) / x;
  }
};
struct Sqrt {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::sqrt;
    return sqrt(x);
  }
};
struct Rsqrt {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    return rsqrt(x);
  }
};
// Powers that are computed without a logarithm.
struct Cube {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    return x * x * x;
  }
};
struct RootPower {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::abs, std::sqrt;
    return select(x == V(-HUGE_VAL), abs(x), sqrt(x) + V(0));  // unlike a plain square root: +∞ at −∞ and +0 at −0
  }
};
struct Sigmoid {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::exp;
    return V(1) / (V(1) + exp(-x));
  }
};
struct Relu {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    return select(x < V(0), V(0), x);  // keeps NaN
  }
};

struct Floor {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::floor;
    return floor(x);
  }
};
struct Ceil {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::ceil;
    return ceil(x);
  }
};
// Rounds halves to even.
struct Round {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::nearbyint;
    return nearbyint(x);
  }
};
struct Trunc {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    return select(x < V(0), Ceil()(x), Floor()(x));
  }
};

struct Exp {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::exp;
    return exp(x);
  }
};
struct Expm1 {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::expm1;
    return expm1(x);
  }
};
struct Log {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::log;
    return log(x);
  }
};
struct Log1p {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::log1p;
    return log1p(x);
  }
};
struct Log2 {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::log2;
    return log2(x);
  }
};
struct Exp2 {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::exp2;
    return exp2(x);
  }
};
struct Log10 {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::log10;
    return log10(x);
  }
};
// Beyond 2²⁸ the square would add nothing to the logarithm, and overflow in the end.
struct Asinh {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::abs, std::copysign, std::log, std::log1p, std::sqrt;
    V size = abs(x), square = size * size;
    V near = log1p(size + square / (V(1) + sqrt(V(1) + square)));
    return copysign(select(size > V(0x1p28), log(size) + V(0.6931471805599453), near), x);
  }
};
struct Acosh {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::log, std::log1p, std::sqrt;
    V above = x - V(1);
    V near = log1p(above + sqrt(above * (above + V(2))));
    V y = select(x > V(0x1p28), log(x) + V(0.6931471805599453), near);
    return select(x < V(1), V(NAN), y);
  }
};
struct Atanh {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::abs, std::copysign, std::log1p;
    V size = abs(x);
    return copysign(V(0.5) * log1p(V(2) * size / (V(1) - size)), x);
  }
};
struct Logit {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    return logit(x);
  }
};
// The angle is taken from the nearest whole number, where the sine is 0, so that its rounding is relative to the
// result.
struct Sinc {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::floor, std::nearbyint, std::sin;
    constexpr double pi = 3.141592653589793;
    V whole = nearbyint(x), half = whole * V(0.5), sine = sin((x - whole) * V(pi));
    V y = select(half == floor(half), sine, -sine) / (x * V(pi));
    return select(x == V(0), V(1), y);
  }
};
struct Sin {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::sin;
    return sin(x);
  }
};
struct Cos {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::cos;
    return cos(x);
  }
};
struct Tan {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::tan;
    return tan(x);
  }
};
struct Asin {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::asin;
    return asin(x);
  }
};
struct Acos {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::acos;
    return acos(x);
  }
};
struct Atan {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::atan;
    return atan(x);
  }
};
struct Sinh {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::sinh;
    return sinh(x);
  }
};
struct Cosh {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::cosh;
    return cosh(x);
  }
};
struct Tanh {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::tanh;
    return tanh(x);
  }
};

}  // namespace reel::formulas::inline REEL_TARGET
