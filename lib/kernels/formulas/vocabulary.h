#pragma once

#include <cmath>

#include "../../core/target.h"

// The formulas of elementwise ops, written once for scalars (on host and device) and for vectors. They use arithmetic,
// comparison with `select`, and the functions that every V provides, but no `if` on values.

namespace reel::formulas::inline REEL_TARGET {

template <class T>
REEL_HOST_DEVICE T select(bool condition, T yes, T no) {
  return condition ? yes : no;
}

template <class T>
REEL_HOST_DEVICE T rsqrt(T x) {
  return T(1) / std::sqrt(x);
}

/// log(x / (1 − x)): log1p loses no digits where the result is near 0, the quotient's logarithm none where x is.
template <class T>
REEL_HOST_DEVICE T logit(T x) {
  T rest = T(1) - x;
  return select(x < T(0.25), std::log(x / rest), std::log1p((T(2) * x - T(1)) / rest));
}

/// The probability that a normal variable is above z, and its density at z, for z ≥ 0.
template <class V>
struct NormalTail {
  V probability, density;
};
template <class T>
REEL_HOST_DEVICE NormalTail<T> normal_tail(T z) {
  return {T(0.5) * std::erfc(z * T(0.7071067811865476)), T(0.3989422804014327) * std::exp(T(-0.5) * z * z)};
}

/// The remainder with the divisor's sign, also when it is zero.
template <class T>
REEL_HOST_DEVICE T mod(T a, T b) {
  T rest = std::fmod(a, b);
  return select(rest == T(0), std::copysign(T(0), b), select((rest < T(0)) != (b < T(0)), rest + b, rest));
}

/// a / b rounded down, as if the quotient were exact; a / b itself if b is 0.
template <class T>
REEL_HOST_DEVICE T floor_quotient(T a, T b) {
  T rest = std::fmod(a, b);
  T quotient = (a - rest) / b - select(rest != T(0) && (rest < T(0)) != (b < T(0)), T(1), T(0));
  T whole = std::floor(quotient);
  whole = select(quotient - whole > T(0.5), whole + T(1), whole);
  return select(b == T(0), a / b, select(quotient == T(0), std::copysign(T(0), a / b), whole));
}

}  // namespace reel::formulas::inline REEL_TARGET
