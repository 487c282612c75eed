#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <reel/dtype.h>

#include "halves.h"
#include "target.h"

namespace reel::detail::inline REEL_TARGET {

/// x rounded to a float whose last bit is odd if x is not representable, so that a second rounding still sees on which
/// side of a tie x lies: two roundings then give the result of one.
REEL_HOST_DEVICE inline float rounded_to_odd(double x) {
  auto single = static_cast<float>(x);
  auto found = static_cast<double>(single);
  auto bits = std::bit_cast<std::uint32_t>(single);
  if (found == x || single - single != 0 || (bits & 1)) return single;
  return std::bit_cast<float>(std::abs(found) < std::abs(x) ? bits + 1 : bits - 1);
}
REEL_HOST_DEVICE inline float rounded_to_odd(std::int64_t x) {
  std::uint64_t rest = x < 0 ? -static_cast<std::uint64_t>(x) : static_cast<std::uint64_t>(x);
  float last_place = x < 0 ? -1.0f : 1.0f;
  // A float has room for 24 bits.
  for (; rest >> 24 != 0; last_place *= 2) rest = rest >> 1 | (rest & 1);
  return static_cast<float>(rest) * last_place;
}

/// Converts a number to another element type. Floating to integer truncates towards zero and clamps to the range, and
/// NaN gives 0; conversion to bool gives x != 0; all others round once.
template <class To, class From>
REEL_HOST_DEVICE To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (is_half_v<From>) {
    return convert<To>(widened(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (is_half_v<To>) {
    if constexpr (std::is_same_v<From, double>)
      return narrowed<To>(rounded_to_odd(value));
    else if constexpr (std::is_integral_v<From> && sizeof(From) >= 4)
      return narrowed<To>(rounded_to_odd(static_cast<std::int64_t>(value)));
    else
      return narrowed<To>(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Beyond the range C++ leaves the result undefined.
    constexpr auto low = static_cast<From>(std::numeric_limits<To>::min());
    constexpr auto high = static_cast<From>(std::numeric_limits<To>::max());
    if (value != value) return 0;
    if (value <= low) return std::numeric_limits<To>::min();
    return value >= high ? std::numeric_limits<To>::max() : static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace reel::detail::inline REEL_TARGET
