#pragma once

#include <cmath>

#include "../core/target.h"

// What each elementwise op computes, written once for scalars (on host and device) and for vectors. The vocabulary is
// arithmetic, comparison with `select`, and the functions that every V brings; there is no `if` on values.

#if defined(__CUDACC__)
#define REEL_HOST_DEVICE __host__ __device__
#else
#define REEL_HOST_DEVICE
#endif

namespace reel::formulas {
inline namespace REEL_TARGET {

template <class T>
REEL_HOST_DEVICE T select(bool condition, T yes, T no) {
  return condition ? yes : no;
}

struct Neg {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    return static_cast<V>(-x);
  }
};
struct Exp {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::exp;
    return exp(x);
  }
};
struct Log {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::log;
    return log(x);
  }
};
struct Sqrt {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::sqrt;
    return sqrt(x);
  }
};
struct Square {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    return static_cast<V>(x * x);
  }
};
struct Tanh {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::tanh;
    return tanh(x);
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
struct Pow {
  template <class V>
  REEL_HOST_DEVICE V operator()(V a, V b) const {
    using std::pow;
    return pow(a, b);
  }
};

struct Equal {
  template <class T>
  REEL_HOST_DEVICE bool operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  REEL_HOST_DEVICE bool operator()(T a, T b) const {
    return a != b;
  }
};
struct Less {
  template <class T>
  REEL_HOST_DEVICE bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  REEL_HOST_DEVICE bool operator()(T a, T b) const {
    return a <= b;
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
    return select(y == V(0), V(0), d);  // y is never negative, and a NaN lets d through
  }
};

}  // namespace REEL_TARGET
}  // namespace reel::formulas
