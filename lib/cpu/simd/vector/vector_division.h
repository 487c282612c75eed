#pragma once

#include "../../../kernels/formulas/vocabulary.h"
#include "vector.h"

namespace reel::detail::inline REEL_TARGET {

// For two f32 and a quotient below this, the quotient in f64 never crosses a whole number, and the remainder is exact.
inline constexpr double exact_quotient = 0x1p28;

template <class M, class F>
Vector<float> divided(Vector<float> a, Vector<float> b, M fast, F exact) {
  Vector<float> size = abs(a / b);
  return patched(hn::And(size < Vector<float>(exact_quotient), abs(b) < Vector<float>(HUGE_VAL)), in_double(a, b, fast),
                 a, b, exact);
}

inline Vector<float> mod(Vector<float> a, Vector<float> b) {
  auto fast = [](auto x, auto y) {
    auto rest = x - y * floor(x / y);
    return select(rest == Vector<double>(0), copysign(rest, y), rest);
  };
  return divided(a, b, fast, [](float x, float y) { return formulas::mod(x, y); });
}

// The quotient rounded down, and what it leaves of a. Below 2⁵² the rounded quotient is at most one too large, which the
// sign of the remainder shows, and the remainder is exact.
template <class Fast, class F>
Vector<double> divided_once(Vector<double> a, Vector<double> b, Fast fast, F exact) {
  using V = Vector<double>;
  if constexpr (!multiply_add_is_fused) return by_lane(a, b, exact);
  V quotient = a / b, whole = floor(quotient), rest = multiply_add(-whole, b, a);
  auto too_large = hn::AndNot(rest == V(0), hn::Xor(rest < V(0), b < V(0)));
  return patched(hn::And(abs(quotient) < V(0x1p52), abs(b) < V(HUGE_VAL)), fast(whole, rest, too_large), a, b, exact);
}

inline Vector<double> mod(Vector<double> a, Vector<double> b) {
  auto fast = [b](auto, auto rest, auto too_large) {
    return select(rest == Vector<double>(0), copysign(rest, b), select(too_large, rest + b, rest));
  };
  return divided_once(a, b, fast, [](double x, double y) { return formulas::mod(x, y); });
}

inline Vector<float> floor_quotient(Vector<float> a, Vector<float> b) {
  auto fast = [](auto x, auto y) { return floor(x / y); };
  return divided(a, b, fast, [](float x, float y) { return formulas::floor_quotient(x, y); });
}

inline Vector<double> floor_quotient(Vector<double> a, Vector<double> b) {
  auto fast = [](auto whole, auto, auto too_large) { return select(too_large, whole - Vector<double>(1), whole); };
  return divided_once(a, b, fast, [](double x, double y) { return formulas::floor_quotient(x, y); });
}

}  // namespace reel::detail::inline REEL_TARGET
