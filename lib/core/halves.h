#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include <reel/dtype.h>

#include "target.h"

// Conversions of halves in a form that compilers vectorise.

namespace reel::detail::inline REEL_TARGET {

template <class T>
inline constexpr bool is_half_v = std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>;

/// The type in which elements of type T are computed: f32 for halves, else T.
template <class T>
using Wide = std::conditional_t<is_half_v<T>, float, T>;

REEL_HOST_DEVICE inline float widened(BFloat16 half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half.bits) << 16);
}

REEL_HOST_DEVICE inline float widened(Float16 half) {
  auto rest = static_cast<std::uint32_t>(half.bits & 0x7fff);
  // A subnormal built as a float's bit pattern would be flushed on a thread that flushes denormals, so it is computed.
  auto subnormal = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(rest)) * 0x1p-24f);
  std::uint32_t magnitude = rest < 0x400 ? subnormal : (rest << 13) + 0x38000000;
  magnitude = rest >= 0x7c00 ? (rest << 13) | 0x7f800000 : magnitude;
  return std::bit_cast<float>(magnitude | static_cast<std::uint32_t>(half.bits & 0x8000) << 16);
}

template <class Half>
REEL_HOST_DEVICE Half narrowed(float value);

template <>
REEL_HOST_DEVICE inline BFloat16 narrowed<BFloat16>(float value) {
  auto word = std::bit_cast<std::uint32_t>(value);
  std::uint32_t rounded = (word + 0x7fff + ((word >> 16) & 1)) >> 16;
  std::uint32_t not_a_number = (word >> 16) | 0x40;
  BFloat16 half;
  half.bits = static_cast<std::uint16_t>((word & 0x7fffffff) > 0x7f800000 ? not_a_number : rounded);
  return half;
}

template <>
REEL_HOST_DEVICE inline Float16 narrowed<Float16>(float value) {
  auto word = std::bit_cast<std::uint32_t>(value);
  std::uint32_t magnitude = word & 0x7fffffff;
  std::uint32_t normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Results that are subnormal in binary16 are rounded by the float adder.
  std::uint32_t tiny = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  std::uint32_t half = magnitude < 0x38800000 ? tiny : normal;
  half = magnitude >= 0x47800000 ? 0x7c00 : half;
  half = magnitude > 0x7f800000 ? 0x7e00 : half;
  Float16 result;
  result.bits = static_cast<std::uint16_t>((word >> 16 & 0x8000) | half);
  return result;
}

}  // namespace reel::detail::inline REEL_TARGET
