#pragma once

#include "integer.h"
#include "row.h"

namespace reel::formulas {
inline namespace REEL_TARGET {

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

}  // namespace REEL_TARGET
}  // namespace reel::formulas

namespace reel::detail {
inline namespace REEL_TARGET {
namespace kernel_lists {

// clang-format off
using UnaryArithmetic = KernelList<
    Row<Neg, numbers, cheap, WrappingNeg>,
    Row<Abs, numbers, cheap, WrappingAbs>,
    Row<Sign, numbers, cheap, IntegerSign>,
    Row<Square, numbers, cheap, WrappingSquare>,
    Row<Relu, numbers, cheap>,
    Row<Floor, numbers, cheap, Itself>,
    Row<Ceil, numbers, cheap, Itself>,
    Row<Round, numbers, cheap, Itself>,
    Row<Trunc, numbers, cheap, Itself>,
    Row<Reciprocal, floating, cheap>,
    Row<Sqrt, floating, cheap>,
    Row<Rsqrt, floating, cheap>>;

using Exponential = KernelList<
    Row<Exp, floating, dear>,
    Row<Expm1, floating, dear>,
    Row<Log, floating, dear>,
    Row<Log1p, floating, dear>,
    Row<Log2, floating, dear>,
    Row<Sinh, floating, dear>,
    Row<Cosh, floating, dear>,
    Row<Tanh, floating, dear>,
    Row<Sigmoid, floating, dear>>;

using Trigonometric = KernelList<
    Row<Sin, floating, dear>,
    Row<Cos, floating, dear>,
    Row<Tan, floating, dear>,
    Row<Asin, floating, dear>,
    Row<Acos, floating, dear>,
    Row<Atan, floating, dear>>;
// clang-format on

}  // namespace kernel_lists
}  // namespace REEL_TARGET
}  // namespace reel::detail
