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

inline Vector<double> mod(Vector<double> a, Vector<double> b) {
  return by_lane(a, b, [](double x, double y) { return formulas::mod(x, y); });
}

inline Vector<float> floor_quotient(Vector<float> a, Vector<float> b) {
  auto fast = [](auto x, auto y) { return floor(x / y); };
  return divided(a, b, fast, [](float x, float y) { return formulas::floor_quotient(x, y); });
}

inline Vector<double> floor_quotient(Vector<double> a, Vector<double> b) {
  return by_lane(a, b, [](double x, double y) { return formulas::floor_quotient(x, y); });
}

}  // namespace reel::detail::inline REEL_TARGET
