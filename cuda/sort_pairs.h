#pragma once

#include <cstdint>

#include "../lib/core/target.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// Numbers, each with a key by which they are ordered. Memory of the device.
template <class Key>
struct Keyed {
  Key* keys;
  std::uint32_t* numbers;
};
using KeyedNumbers = Keyed<std::uint64_t>;

/// Orders `count` numbers, fewer than 2³², by their keys, which are below 2^bits; those of one key stay as they stand. Works
/// in both places, and gives the one where the result lies.
Keyed<std::uint32_t> sort_pairs(Keyed<std::uint32_t> given, Keyed<std::uint32_t> other, std::int64_t count, int bits);
Keyed<std::uint64_t> sort_pairs(Keyed<std::uint64_t> given, Keyed<std::uint64_t> other, std::int64_t count, int bits);

}  // namespace REEL_TARGET
}  // namespace reel::detail
