#pragma once

#include <cstdint>

#include "../vector/vector_exponential.h"

// Parts of sums of exponentials over rows. This header is compiled once per instruction set.

namespace reel::detail::inline REEL_TARGET {

/// Loads a vector; a last, partial vector is padded with −∞.
template <class T>
Vector<T> load_or_lowest(const T* from, std::int64_t count) {
  T lanes[Vector<T>::lanes];
  for (std::int64_t i = 0; i < Vector<T>::lanes; ++i) lanes[i] = i < count ? from[i] : -infinity<T>;
  return Vector<T>::load(lanes);
}

/// The largest element; −∞ if there is none, NaN if one is.
template <class T>
T largest_of(const T* x, std::int64_t count) {
  using V = Vector<T>;
  constexpr std::int64_t lanes = V::lanes;
  V most[4] = {V::repeat(-infinity<T>), V::repeat(-infinity<T>), V::repeat(-infinity<T>), V::repeat(-infinity<T>)};
  std::int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes)
    for (int k = 0; k < 4; ++k) most[k] = maximum(most[k], V::load(x + i + k * lanes));
  for (; i < count; i += lanes) most[0] = maximum(most[0], load_or_lowest(x + i, count - i));
  V all = maximum(maximum(most[0], most[1]), maximum(most[2], most[3]));
  bool is_number = hn::AllTrue(typename V::Tag(), all == all);
  return is_number ? hn::GetLane(hn::MaxOfLanes(typename V::Tag(), all.raw)) : std::numeric_limits<T>::quiet_NaN();
}

/// e^x for x ≤ 0 or NaN. Masked elements, which are −∞, take hardly more time than others.
inline Vector<double> exp_below(Vector<double> x) {
  return select(x == x, Vector<double>(hn::Exp(Vector<double>::Tag(), x.raw)), x);
}
HWY_INLINE Vector<float> exp_below(Vector<float> x) {
  using V = Vector<float>;
  auto near = x > V(-87);
  bool all_near = hn::AllTrue(V::Tag(), near);
  if (!all_near) [[unlikely]] {
    if (!hn::AllTrue(V::Tag(), hn::Or(near, x < V(-104)))) return exp_of_any(x);
    x = select(near, x, V(0));
  }
  WholePart n(x, V(1.4426950408889634));
  V y = n.times_power(expm1_of_rest(x, n.whole) + V(1));
  return all_near ? y : select(near, y, V(0));
}

}  // namespace reel::detail::inline REEL_TARGET
