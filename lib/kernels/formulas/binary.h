#pragma once

#include "integer.h"
#include "vocabulary.h"

namespace reel::formulas::inline REEL_TARGET {

struct Add {
  template <class V>
  REEL_HOST_DEVICE V operator()(V a, V b) const {
    return static_cast<V>(a + b);
  }
};
struct Sub {
  template <class V>
  REEL_HOST_DEVICE V operator()(V a, V b) const {
    return static_cast<V>(a - b);
  }
};
struct Mul {
  template <class V>
  REEL_HOST_DEVICE V operator()(V a, V b) const {
    return static_cast<V>(a * b);
  }
};
struct Div {
  template <class V>
  REEL_HOST_DEVICE V operator()(V a, V b) const {
    return a / b;
  }
};
struct Mod {
  template <class V>
  REEL_HOST_DEVICE V operator()(V a, V b) const {
    return mod(a, b);
  }
};
struct Fmod {
  template <class V>
  REEL_HOST_DEVICE V operator()(V a, V b) const {
    using std::abs;
    V size = mod(abs(a), abs(b));
    return select(a < V(0), -size, size);
  }
};
struct FloorDivide {
  template <class V>
  REEL_HOST_DEVICE V operator()(V a, V b) const {
    return floor_quotient(a, b);
  }
};
struct Pow {
  template <class V>
  REEL_HOST_DEVICE V operator()(V a, V b) const {
    using std::pow;
    return pow(a, b);
  }
};
// NaN if either is.
struct Maximum {
  template <class V>
  REEL_HOST_DEVICE V operator()(V a, V b) const {
    return select(a > b, a, select(a == a, b, a));
  }
};
struct Minimum {
  template <class V>
  REEL_HOST_DEVICE V operator()(V a, V b) const {
    return select(a < b, a, select(a == a, b, a));
  }
};
struct Atan2 {
  template <class V>
  REEL_HOST_DEVICE V operator()(V a, V b) const {
    using std::atan2;
    return atan2(a, b);
  }
};
struct Logaddexp {
  template <class V>
  REEL_HOST_DEVICE V operator()(V a, V b) const {
    using std::abs, std::exp, std::log1p;
    V larger = Maximum()(a, b), apart = select(a == b, V(0), abs(a - b));  // ∞ − ∞ is NaN
    return larger + log1p(exp(-apart));
  }
};

// min(max(x, low), high), NaN if an operand is.
struct Clamp {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x, V low, V high) const {
    return Minimum()(Maximum()(x, low), high);
  }
};
// Exact at both ends, even if the difference is infinite.
struct Lerp {
  template <class V>
  REEL_HOST_DEVICE V operator()(V a, V b, V weight) const {
    V difference = b - a;
    V inside = select(weight < V(0.5), a + weight * difference, b - difference * (V(1) - weight));
    return select(weight == V(0), a, select(weight == V(1), b, inside));
  }
};

// d is the gradient of the result y.
struct TanhGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V y) const {
    return d * (V(1) - y * y);
  }
};
struct SigmoidGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V y) const {
    return d * (y * (V(1) - y));
  }
};
struct ReluGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V y) const {
    return select(y == V(0), V(0), d);  // y is never negative, and a NaN passes d on
  }
};

// The derivative of LeakyRelu with respect to x.
struct PreluSlope {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x, V weight) const {
    return select(x > V(0), V(1), weight);
  }
};

}  // namespace reel::formulas::inline REEL_TARGET
