#pragma once

#include "vocabulary.h"

namespace reel::formulas::inline REEL_TARGET {

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

}  // namespace reel::formulas::inline REEL_TARGET
