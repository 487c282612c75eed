#pragma once

#include <cmath>

#include <hwy/contrib/math/math-inl.h>

#include "vector.h"

namespace reel::detail::inline REEL_TARGET {

// Beyond this the subtracted multiple of π is not exact.
inline constexpr double reduction_limit = 39000;

// Clamps a result to ±1, which rounding may exceed.
template <class T>
Vector<T> within_one(Vector<T> x) {
  using V = Vector<T>;
  return hn::Min(hn::Max(x.raw, V(-1).raw), V(1).raw);
}

template <class T>
Vector<T> sin(Vector<T> x) {
  using V = Vector<T>;
  V y = within_one<T>(hn::Sin(typename V::Tag(), x.raw));
  y = select(x == V(0), x, y);  // keeps −0
  return patched(abs(x) < V(reduction_limit), y, x, [](T lane) { return std::sin(lane); });
}

template <class T>
Vector<T> cos(Vector<T> x) {
  using V = Vector<T>;
  V y = within_one<T>(hn::Cos(typename V::Tag(), x.raw));
  return patched(abs(x) < V(reduction_limit), y, x, [](T lane) { return std::cos(lane); });
}

inline Vector<float> tan(Vector<float> x) {
  using V = Vector<float>;
  // π / 2 as a sum of parts of 9 bits, so that their multiples are exact.
  V quarters = nearbyint(x * V(0.6366197723675814));
  V rest = multiply_add(quarters, V(-0x1.92p+0), x);
  rest = multiply_add(quarters, V(-0x1.fbp-12), rest);
  rest = multiply_add(quarters, V(-0x1.51p-22), rest);
  rest = multiply_add(quarters, V(-0x1.0b4612p-34), rest);
  constexpr double series[] = {0.33333351511,  0.13332607469,   0.054065828492, 0.021253445194,
                               0.010906418599, 4.2558880874e-6, 0.0044165352074};
  V square = rest * rest;
  V tangent = multiply_add(polynomial(square, series), square * rest, rest);
  V half = quarters * V(0.5);
  V y = select(floor(half) == half, tangent, V(-1) / tangent);
  y = select(x == V(0), x, y);  // keeps −0
  return patched(abs(x) < V(reduction_limit), y, x, [](float lane) { return std::tan(lane); });
}

inline Vector<double> tan(Vector<double> x) {
  return by_lane(x, [](double lane) { return std::tan(lane); });
}

template <class T>
Vector<T> asin(Vector<T> x) {
  return hn::Asin(typename Vector<T>::Tag(), x.raw);
}

template <class T>
Vector<T> acos(Vector<T> x) {
  return hn::Acos(typename Vector<T>::Tag(), x.raw);
}

template <class T>
Vector<T> atan(Vector<T> x) {
  return hn::Atan(typename Vector<T>::Tag(), x.raw);
}

/// The angle of the point (b, a).
template <class T>
Vector<T> atan2(Vector<T> a, Vector<T> b) {
  using V = Vector<T>;
  V y = abs(a), x = abs(b);
  auto steep = y > x;
  V large = select(steep, y, x), small = select(steep, x, y);
  // 0 / 0 is treated as 0, ∞ / ∞ as 1.
  V ratio = select(large == small, select(large == V(0), V(0), V(1)), small / large);
  V angle = atan(ratio);
  angle = select(steep, V(1.5707963267948966) - angle, angle);
  angle = select(copysign(V(1), b) < V(0), V(3.141592653589793) - angle, angle);
  angle = copysign(angle, a);
  return select(a == a, select(b == b, angle, b), a);
}

}  // namespace reel::detail::inline REEL_TARGET
