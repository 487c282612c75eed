#pragma once

#include <cstdint>

#include "../lib/core/target.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// Numbers, each with a key by which they are ordered. Memory of the device.
struct KeyedNumbers {
  std::uint64_t* keys;
  std::uint32_t* numbers;
};

/// Orders `count` numbers by their keys, which are below 2^bits; those of one key stay as they stand. Works in both
/// places, and gives the one where the result lies.
KeyedNumbers sort_pairs(KeyedNumbers given, KeyedNumbers other, std::int64_t count, int bits);

}  // namespace REEL_TARGET
}  // namespace reel::detail
