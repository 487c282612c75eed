#pragma once

#include "row.h"

namespace reel::formulas {
inline namespace REEL_TARGET {

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
template <class F>
struct Reversed {
  template <class T>
  REEL_HOST_DEVICE bool operator()(T a, T b) const {
    return F()(b, a);
  }
};
using Greater = Reversed<Less>;
using GreaterEqual = Reversed<LessEqual>;
struct LogicalAnd {
  template <class T>
  REEL_HOST_DEVICE bool operator()(T a, T b) const {
    return (a != T(0)) & (b != T(0));
  }
};
struct LogicalOr {
  template <class T>
  REEL_HOST_DEVICE bool operator()(T a, T b) const {
    return (a != T(0)) | (b != T(0));
  }
};
struct LogicalXor {
  template <class T>
  REEL_HOST_DEVICE bool operator()(T a, T b) const {
    return (a != T(0)) != (b != T(0));
  }
};

struct LogicalNot {
  template <class T>
  REEL_HOST_DEVICE bool operator()(T x) const {
    return x == T(0);
  }
};
struct IsNan {
  template <class T>
  REEL_HOST_DEVICE bool operator()(T x) const {
    return x != x;
  }
};
struct IsInfinite {
  template <class T>
  REEL_HOST_DEVICE bool operator()(T x) const {
    return (x == T(HUGE_VAL)) | (x == T(-HUGE_VAL));
  }
};
struct IsFinite {
  template <class T>
  REEL_HOST_DEVICE bool operator()(T x) const {
    return x - x == T(0);
  }
};

}  // namespace REEL_TARGET
}  // namespace reel::formulas

namespace reel::detail {
inline namespace REEL_TARGET {
namespace kernel_lists {

// clang-format off
using UnaryComparison = KernelList<
    Row<LogicalNot, compared, cheap>,
    Row<IsNan, floating_compared, cheap>,
    Row<IsInfinite, floating_compared, cheap>,
    Row<IsFinite, floating_compared, cheap>>;

using BinaryComparison = KernelList<
    Row<Equal, compared, cheap>,
    Row<NotEqual, compared, cheap>,
    Row<Less, compared, cheap>,
    Row<LessEqual, compared, cheap>,
    Row<Reversed<Less>, compared, cheap>,
    Row<Reversed<LessEqual>, compared, cheap>,
    Row<LogicalAnd, compared, cheap>,
    Row<LogicalOr, compared, cheap>,
    Row<LogicalXor, compared, cheap>>;
// clang-format on

}  // namespace kernel_lists
}  // namespace REEL_TARGET
}  // namespace reel::detail
