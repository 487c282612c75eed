#pragma once

#include <bit>
#include <cstdint>

#include <reel/dtype.h>

#include "../lib/core/target.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// The bits of unsigned integers that are ordered as the elements of a dtype are.
constexpr int key_bits(DType dtype) { return 8 * static_cast<int>(size_of(dtype)); }

/// The key of NaN; no other number of a floating dtype has it.
REEL_HOST_DEVICE constexpr std::uint64_t nan_key(DType dtype) {
  return ~std::uint64_t{0} >> (64 - 8 * static_cast<int>(size_of(dtype)));
}

/// Of a number's bits, those of infinity being `infinity`. NaN is the largest, and the two zeros are one.
template <class Bits>
REEL_HOST_DEVICE Bits floating_key(Bits bits, Bits infinity) {
  constexpr auto sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  auto magnitude = static_cast<Bits>(bits & static_cast<Bits>(~sign));
  if (magnitude > infinity) return static_cast<Bits>(~Bits{0});
  if (magnitude == 0) return sign;
  return static_cast<Bits>(bits & sign ? ~bits : bits | sign);
}

/// The key of an element.
REEL_HOST_DEVICE inline std::uint64_t key_at(DType dtype, const void* data, std::int64_t offset) {
  switch (dtype) {
    case DType::f64:
      return floating_key<std::uint64_t>(static_cast<const std::uint64_t*>(data)[offset], 0x7ff0'0000'0000'0000);
    case DType::bf16: return floating_key<std::uint16_t>(static_cast<const std::uint16_t*>(data)[offset], 0x7f80);
    case DType::f16: return floating_key<std::uint16_t>(static_cast<const std::uint16_t*>(data)[offset], 0x7c00);
    case DType::f32: return floating_key<std::uint32_t>(static_cast<const std::uint32_t*>(data)[offset], 0x7f80'0000);
    case DType::i64: return static_cast<const std::uint64_t*>(data)[offset] ^ std::uint64_t{1} << 63;
    case DType::i32: return static_cast<const std::uint32_t*>(data)[offset] ^ std::uint32_t{1} << 31;
    default: return static_cast<const std::uint8_t*>(data)[offset];
  }
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
