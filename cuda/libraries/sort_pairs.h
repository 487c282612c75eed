#pragma once

#include <cstdint>

#include "../../lib/core/target.h"

namespace reel::detail::inline REEL_TARGET {

/// Numbers with the keys by which they are sorted. In device memory.
template <class Key>
struct Keyed {
  Key* keys;
  std::uint32_t* numbers;
};
using KeyedNumbers = Keyed<std::uint64_t>;

/// Sorts `count` numbers, fewer than 2³², stably by their keys, which are below 2^bits. Uses both buffers, and returns
/// the one that holds the result.
Keyed<std::uint32_t> sort_pairs(Keyed<std::uint32_t> given, Keyed<std::uint32_t> other, std::int64_t count, int bits);
Keyed<std::uint64_t> sort_pairs(Keyed<std::uint64_t> given, Keyed<std::uint64_t> other, std::int64_t count, int bits);

}  // namespace reel::detail::inline REEL_TARGET
