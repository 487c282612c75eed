#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include <reel/dtype.h>

#include "../../lib/core/dtype_dispatch.h"
#include "../../lib/core/target.h"

namespace reel::detail::inline REEL_TARGET {

/// The number of bits of the unsigned keys that have the order of a dtype's elements.
constexpr int key_bits(DType dtype) { return 8 * static_cast<int>(size_of(dtype)); }

/// The key of NaN; no other number of a floating dtype has it.
REEL_HOST_DEVICE constexpr std::uint64_t nan_key(DType dtype) {
  return ~std::uint64_t{0} >> (64 - 8 * static_cast<int>(size_of(dtype)));
}

/// The bits of infinity without its sign.
REEL_HOST_DEVICE constexpr std::uint64_t infinity_bits(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x7ff0'0000'0000'0000;
    case DType::f32: return 0x7f80'0000;
    case DType::bf16: return 0x7f80;
    default: return 0x7c00;
  }
}

/// The key of infinity, in a floating dtype.
REEL_HOST_DEVICE constexpr std::uint64_t infinity_key(DType dtype) {
  return infinity_bits(dtype) | std::uint64_t{1} << (8 * static_cast<int>(size_of(dtype)) - 1);
}

/// The key of a floating number's bits. NaN is the largest, and the two zeros are equal.
template <DType dtype, class Bits>
REEL_HOST_DEVICE Bits floating_key(Bits bits) {
  constexpr auto sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  auto magnitude = static_cast<Bits>(bits & static_cast<Bits>(~sign));
  if (magnitude > static_cast<Bits>(infinity_bits(dtype))) return static_cast<Bits>(~Bits{0});
  if (magnitude == 0) return sign;
  return static_cast<Bits>(bits & sign ? ~bits : bits | sign);
}

/// The key of an element.
REEL_HOST_DEVICE inline std::uint64_t key_at(DType dtype, const void* data, std::int64_t offset) {
  auto floating = [=]<DType of, class Bits>(std::integral_constant<DType, of>, Bits) -> std::uint64_t {
    return floating_key<of>(static_cast<const Bits*>(data)[offset]);
  };
  switch (dtype) {
    case DType::f64: return floating(std::integral_constant<DType, DType::f64>(), std::uint64_t{});
    case DType::f32: return floating(std::integral_constant<DType, DType::f32>(), std::uint32_t{});
    case DType::bf16: return floating(std::integral_constant<DType, DType::bf16>(), std::uint16_t{});
    case DType::f16: return floating(std::integral_constant<DType, DType::f16>(), std::uint16_t{});
    case DType::boolean: return static_cast<const std::uint8_t*>(data)[offset];
    default: break;
  }
  return with_integer(dtype, [=]<class T>(std::type_identity<T>) -> std::uint64_t {
    using Bits = std::make_unsigned_t<T>;
    constexpr auto sign = static_cast<Bits>(std::is_signed_v<T> ? Bits{1} << (8 * sizeof(T) - 1) : Bits{0});
    return static_cast<Bits>(static_cast<const Bits*>(data)[offset] ^ sign);
  });
}

}  // namespace reel::detail::inline REEL_TARGET
