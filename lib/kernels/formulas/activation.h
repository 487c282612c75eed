#pragma once

#include "binary.h"
#include "unary.h"

// Activation functions, each with the product of its derivative and the gradient d of its result. Where a factor of an
// infinite x is 0, so is the product.

namespace reel::formulas::inline REEL_TARGET {

struct LeakyRelu {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x, V slope) const {
    return select(x > V(0), x, x * slope);
  }
};
struct LeakyReluGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V x, V slope) const {
    return select(x > V(0), d, d * slope);
  }
};

// The factor of the normal distribution is constant to full precision beyond ±40.
struct WithinForty {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    return Clamp()(x, V(-40), V(40));
  }
};

struct Gelu {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::abs;
    V size = abs(x);
    return Relu()(x) - select(size < V(40), size * normal_tail(size).probability, V(0));
  }
};
struct GeluGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V x) const {
    using std::abs;
    V near = WithinForty()(x);
    auto [above, density] = normal_tail(abs(near));
    return d * (select(near < V(0), above, V(1) - above) + near * density);
  }
};

// tanh √(2/π) (x + 0.044715 x³)
struct GeluTanh {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::tanh;
    return tanh(V(0.7978845608028654) * x * (V(1) + V(0.044715) * x * x));
  }
};
struct TanhGelu {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    return select(x < V(-40), V(0), V(0.5) * x * (V(1) + GeluTanh()(x)));
  }
};
struct TanhGeluGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V x) const {
    V near = WithinForty()(x), t = GeluTanh()(near);
    V slope = V(0.7978845608028654) * (V(1) + V(0.134145) * near * near);
    return d * (V(0.5) * (V(1) + t) + V(0.5) * near * (V(1) - t * t) * slope);
  }
};

struct Silu {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    V s = Sigmoid()(x);
    return select(s == V(0), V(0), x * s);
  }
};
struct SiluGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V x) const {
    V near = Clamp()(x, V(-1000), V(1000)), s = Sigmoid()(near);
    return d * (s * (V(1) + near * (V(1) - s)));
  }
};

struct Elu {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x, V alpha, V scale, V rate) const {
    using std::expm1;
    return scale * select(x > V(0), x, alpha * expm1(Minimum()(x, V(0)) * rate));
  }
};
struct EluGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V x, V alpha, V scale, V rate) const {
    using std::exp;
    return d * scale * select(x > V(0), V(1), alpha * rate * exp(Minimum()(x, V(0)) * rate));
  }
};

struct Softplus {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x, V beta, V threshold) const {
    using std::abs, std::exp, std::log1p;
    V z = beta * x;
    return select(z > threshold, x, (Maximum()(z, V(0)) + log1p(exp(-abs(z)))) / beta);
  }
};
struct SoftplusGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V x, V beta, V threshold) const {
    V z = beta * x;
    return select(z > threshold, d, d * Sigmoid()(z));
  }
};

// tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2), which is 1 from 20 on.
struct Mish {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::exp;
    V e = exp(Minimum()(x, V(20))), n = e * (e + V(2)), ratio = n / (n + V(2));
    return select(ratio == V(0), V(0), x * ratio);
  }
};
struct MishGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V x) const {
    using std::exp;
    V near = Clamp()(x, V(-1000), V(20)), e = exp(near), n = e * (e + V(2)), reciprocal = V(1) / (n + V(2));
    return d * (n * reciprocal + near * (V(4) * e * (e + V(1))) * (reciprocal * reciprocal));
  }
};

struct Hardswish {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    return select(x <= V(-3), V(0), x * (Minimum()(x + V(3), V(6)) / V(6)));
  }
};
struct HardswishGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V x) const {
    return select(x <= V(-3), V(0), select(x < V(3), d * (x / V(3) + V(0.5)), d));
  }
};

struct Softsign {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    using std::abs, std::copysign;
    V size = abs(x);
    return select(size == V(HUGE_VAL), copysign(V(1), x), x / (V(1) + size));
  }
};
struct SoftsignGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V x) const {
    using std::abs;
    V divisor = V(1) + abs(x);
    return d / (divisor * divisor);
  }
};

struct HardtanhGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V x, V low, V high) const {
    return select(x <= low, V(0), select(x >= high, V(0), d));
  }
};

struct Hardsigmoid {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x) const {
    return Clamp()(x + V(3), V(0), V(6)) / V(6);
  }
};
struct HardsigmoidGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V x) const {
    return HardtanhGradient()(d / V(6), x, V(-3), V(3));
  }
};

struct Hardshrink {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x, V lambda) const {
    using std::abs;
    return select(abs(x) <= lambda, V(0), x);
  }
};
struct Softshrink {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x, V lambda) const {
    return x - Clamp()(x, -lambda, lambda);
  }
};
struct ShrinkGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V x, V lambda) const {
    using std::abs;
    return select(abs(x) <= lambda, V(0), d);
  }
};

struct NanToNum {
  template <class V>
  REEL_HOST_DEVICE V operator()(V x, V nan, V positive_infinity, V negative_infinity) const {
    V y = select(x == V(HUGE_VAL), positive_infinity, select(x == V(-HUGE_VAL), negative_infinity, x));
    return select(x == x, y, nan);
  }
};
struct NanToNumGradient {
  template <class V>
  REEL_HOST_DEVICE V operator()(V d, V x) const {
    using std::abs;
    return select(abs(x) < V(HUGE_VAL), d, V(0));
  }
};

}  // namespace reel::formulas::inline REEL_TARGET
