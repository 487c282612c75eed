#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include <reel/dtype.h>

#include "../../core/philox.h"

// How the four random words of an element become its value: see KernelTable.

namespace reel::formulas::inline REEL_TARGET {

/// A uniform number in [0, 1) with as many bits as T's fraction holds.
template <class T>
struct UniformDraw {
  REEL_HOST_DEVICE auto operator()(detail::PhiloxWords w) const {
    if constexpr (std::is_same_v<T, double>)
      return detail::unit_double(w.word[0], w.word[1]);
    else if constexpr (std::is_same_v<T, BFloat16>)
      return detail::unit_float<8>(w.word[0]);
    else if constexpr (std::is_same_v<T, Float16>)
      return detail::unit_float<11>(w.word[0]);
    else
      return detail::unit_float(w.word[0]);
  }
};

/// V: f32 or f64. 1 − u is in (0, 1], where the logarithm is finite.
template <class V>
struct NormalDraw {
  static constexpr int words = sizeof(V) / 2;
  /// The uniform numbers u, of the logarithm, and a, the angle in turns.
  REEL_HOST_DEVICE static V logarithm_part(detail::PhiloxWords w) { return UniformDraw<V>()(w); }
  REEL_HOST_DEVICE static V angle_part(detail::PhiloxWords w) {
    return UniformDraw<V>()({{w.word[words / 2], w.word[words - 1], 0, 0}});
  }
  REEL_HOST_DEVICE V operator()(detail::PhiloxWords w) const {
    constexpr double turn = 6.283185307179586;
    auto u = static_cast<double>(logarithm_part(w)), angle = static_cast<double>(angle_part(w));
    return static_cast<V>(std::sqrt(-2 * std::log(1 - u)) * std::cos(turn * angle));
  }
};

/// V: f32 or f64. u lies within (0, 1), where both logarithms are finite.
template <class V>
struct GumbelDraw {
  static constexpr int words = sizeof(V) / 4;
  REEL_HOST_DEVICE static double logarithm_part(detail::PhiloxWords w) {
    if constexpr (std::is_same_v<V, double>)
      return (static_cast<double>((static_cast<std::uint64_t>(w.word[0]) << 32 | w.word[1]) >> 12) + 0.5) * 0x1p-52;
    else
      return (static_cast<double>(w.word[0]) + 0.5) * 0x1p-32;
  }
  REEL_HOST_DEVICE V operator()(detail::PhiloxWords w) const {
    return static_cast<V>(-std::log(-std::log(logarithm_part(w))));
  }
};

/// One of `count` integers from `low` on: the high words of a 128-bit number times `count`.
struct IntegerDraw {
  std::int64_t low;
  std::uint64_t count;
  REEL_HOST_DEVICE std::uint64_t operator()(detail::PhiloxWords w) const {
    __extension__ typedef unsigned __int128 TwoWords;
    std::uint64_t upper = static_cast<std::uint64_t>(w.word[0]) << 32 | w.word[1];
    std::uint64_t lower = static_cast<std::uint64_t>(w.word[2]) << 32 | w.word[3];
    TwoWords product = TwoWords{upper} * count + (TwoWords{lower} * count >> 64);
    return static_cast<std::uint64_t>(low) + static_cast<std::uint64_t>(product >> 64);
  }
};

/// An event of this probability occurs if the first word is less than the result. Compared as integers, so that every
/// device draws equal values.
REEL_HOST_DEVICE inline std::uint64_t threshold_of(double probability) {
  return static_cast<std::uint64_t>(std::ceil(probability * 0x1p32));
}

}  // namespace reel::formulas::inline REEL_TARGET
