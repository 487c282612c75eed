#pragma once

#include "activation.h"

// Losses of an element x and its target t, each with the product of its derivative by x and the gradient d of the loss.
// All take a parameter, which only some have.

namespace reel::formulas::inline REEL_TARGET {

struct SquaredError {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x, V t, V) const {
    return Square()(x - t);
  }
};
struct SquaredErrorGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V x, V t, V) const {
    return d * (V(2) * (x - t));
  }
};

struct AbsoluteError {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x, V t, V) const {
    using std::abs;
    return abs(x - t);
  }
};
struct AbsoluteErrorGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V x, V t, V) const {
    return d * Sign()(x - t);
  }
};

struct Huber {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x, V t, V delta) const {
    V e = x - t, cut = Clamp()(e, -delta, delta);
    return cut * (e - cut * V(0.5));
  }
};
struct HuberGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V x, V t, V delta) const {
    return d * Clamp()(x - t, -delta, delta);
  }
};

struct SmoothL1 {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x, V t, V beta) const {
    return Huber()(x, t, beta) / beta;
  }
};
struct SmoothL1Gradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V x, V t, V beta) const {
    return HuberGradient()(d, x, t, beta) / beta;
  }
};

// Logarithms are at least −100, and constant where they would be less.
struct BinaryCrossEntropy {
  template <class V>
  REEL_HOST_DEVICE V operator()(V p, V t, V) const {
    using std::log, std::log1p;
    return (t - V(1)) * Maximum()(log1p(-p), V(-100)) - t * Maximum()(log(p), V(-100));
  }
};
struct BinaryCrossEntropyGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V p, V t, V) const {
    using std::abs;
    V rest = select(p == V(1), V(0), (V(1) - t) / (V(1) - p));
    return d * (rest - select(abs(p) <= V(3.7200759760208356e-44), V(0), t / p));
  }
};

struct LogitsCrossEntropy {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x, V t, V) const {
    using std::abs, std::exp, std::log1p;
    return select(x < V(0), -(t * x), (V(1) - t) * x) + log1p(exp(-abs(x)));
  }
};
struct LogitsCrossEntropyGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V x, V t, V) const {
    using std::abs, std::exp;
    V e = exp(-abs(x)), small = e / (V(1) + e);  // of σ(x) and σ(−x), so that no digits are lost
    return d * select(x < V(0), small - t, (V(1) - t) - small);
  }
};

struct Divergence {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x, V t, V) const {
    using std::log;
    return t * (log(select(t == V(0), V(1), t)) - x);
  }
};
struct DivergenceGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V, V t, V) const {
    return -(d * t);
  }
};

}  // namespace reel::formulas::inline REEL_TARGET
