#pragma once

#include <cstdint>

#include "target.h"

namespace reel::detail::inline REEL_TARGET {

/// Four random words.
struct PhiloxWords {
  std::uint32_t word[4];
};

// The constants of Philox 4×32-10: rounds, factors of the counter's words 0 and 2, and increments of the key's words.
constexpr int philox_rounds = 10;
constexpr std::uint32_t philox_factor0 = 0xD2511F53, philox_factor2 = 0xCD9E8D57;
constexpr std::uint32_t philox_step0 = 0x9E3779B9, philox_step1 = 0xBB67AE85;

/// Philox 4×32-10 of a counter under a key.
/// Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011), section 4.3.
REEL_HOST_DEVICE inline PhiloxWords philox(std::uint64_t key, std::uint64_t high, std::uint64_t low) {
  auto key0 = static_cast<std::uint32_t>(key), key1 = static_cast<std::uint32_t>(key >> 32);
  std::uint32_t c0 = static_cast<std::uint32_t>(low), c1 = static_cast<std::uint32_t>(low >> 32);
  std::uint32_t c2 = static_cast<std::uint32_t>(high), c3 = static_cast<std::uint32_t>(high >> 32);
  for (int round = 0; round < philox_rounds; ++round) {
    std::uint64_t product0 = std::uint64_t{philox_factor0} * c0;
    std::uint64_t product1 = std::uint64_t{philox_factor2} * c2;
    c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ key0;
    c1 = static_cast<std::uint32_t>(product1);
    c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ key1;
    c3 = static_cast<std::uint32_t>(product0);
    key0 += philox_step0;
    key1 += philox_step1;
  }
  return {{c0, c1, c2, c3}};
}

/// A number in [0, 1) with `bits` bits: as many as the result's fraction holds, so that none rounds up to 1.
template <int bits = 24>
REEL_HOST_DEVICE float unit_float(std::uint32_t word) {
  constexpr float last_place = 1.0f / (1 << bits);
  return static_cast<float>(word >> (32 - bits)) * last_place;
}
/// A number in [0, 1) with 53 bits.
REEL_HOST_DEVICE inline double unit_double(std::uint32_t high, std::uint32_t low) {
  std::uint64_t bits = (static_cast<std::uint64_t>(high) << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace reel::detail::inline REEL_TARGET
