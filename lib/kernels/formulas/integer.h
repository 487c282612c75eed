#pragma once

#include <cstdint>
#include <type_traits>

#include "../../core/target.h"

// Formulas of integers. Overflow wraps around, as in NumPy and PyTorch, so signed integers are computed as unsigned
// ones.

namespace reel::formulas::inline REEL_TARGET {

struct WrappingNeg {
  template <class T>
  REEL_HOST_DEVICE T operator()(T x) const {
    return static_cast<T>(-static_cast<std::make_unsigned_t<T>>(x));
  }
};
struct WrappingAbs {
  template <class T>
  REEL_HOST_DEVICE T operator()(T x) const {
    return x < T(0) ? WrappingNeg()(x) : x;
  }
};
struct WrappingSquare {
  template <class T>
  REEL_HOST_DEVICE T operator()(T x) const {
    auto wide = static_cast<std::uint64_t>(x);
    return static_cast<T>(wide * wide);
  }
};
struct IntegerSign {
  template <class T>
  REEL_HOST_DEVICE T operator()(T x) const {
    return static_cast<T>((x > T(0)) - (x < T(0)));
  }
};
struct Itself {
  template <class T>
  REEL_HOST_DEVICE T operator()(T x) const {
    return x;
  }
};

template <class F>
struct Wrapping {
  template <class T>
  REEL_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>) {
      return static_cast<bool>(F()(static_cast<int>(a), static_cast<int>(b)));
    } else {
      // At least as wide as an int: products of two unsigned shorts are computed as signed ints, which they can exceed.
      using Wide = std::common_type_t<unsigned, std::make_unsigned_t<T>>;
      return static_cast<T>(F()(static_cast<Wide>(a), static_cast<Wide>(b)));
    }
  }
};
struct IntegerPow {
  template <class T>
  REEL_HOST_DEVICE T operator()(T base, T exponent) const {
    if constexpr (std::is_signed_v<T>)
      if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    std::uint64_t result = 1;
    auto power = static_cast<std::uint64_t>(base);
    for (auto rest = static_cast<std::uint64_t>(exponent); rest != 0; rest >>= 1) {
      if (rest & 1) result *= power;
      power *= power;
    }
    return static_cast<T>(result);
  }
};
// 0 if b is 0; the least integer divided by −1 wraps around, where the processor would raise a signal.
struct IntegerQuotient {
  template <class T>
  REEL_HOST_DEVICE T operator()(T a, T b) const {
    if (b == T(0)) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (b == T(-1)) return static_cast<T>(-static_cast<std::make_unsigned_t<T>>(a));
      return static_cast<T>(a / b - (a % b != 0 && (a < 0) != (b < 0)));
    } else {
      return static_cast<T>(a / b);
    }
  }
};
struct IntegerFmod {
  template <class T>
  REEL_HOST_DEVICE T operator()(T a, T b) const {
    if (b == T(0)) return 0;
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
struct IntegerMod {
  template <class T>
  REEL_HOST_DEVICE T operator()(T a, T b) const {
    T rest = IntegerFmod()(a, b);
    if constexpr (std::is_signed_v<T>)
      if (rest != 0 && (rest < 0) != (b < 0)) return static_cast<T>(rest + b);
    return rest;
  }
};

// Bits of integers; of bools but for the shifts.
struct BitwiseAnd {
  template <class T>
  REEL_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitwiseOr {
  template <class T>
  REEL_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitwiseXor {
  template <class T>
  REEL_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
// Shifts by negative numbers, and by all bits or more, which the language leaves undefined, shift all bits out.
template <class T>
REEL_HOST_DEVICE bool shifts_all_out(T places) {
  return static_cast<std::make_unsigned_t<T>>(places) >= 8 * sizeof(T);
}
struct LeftShift {
  template <class T>
  REEL_HOST_DEVICE T operator()(T a, T b) const {
    return shifts_all_out(b) ? T(0) : static_cast<T>(static_cast<std::uint64_t>(a) << b);
  }
};
struct RightShift {
  template <class T>
  REEL_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(a >> (shifts_all_out(b) ? static_cast<T>(8 * sizeof(T) - 1) : b));
  }
};

}  // namespace reel::formulas::inline REEL_TARGET
