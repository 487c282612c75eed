#pragma once

#include <cstdint>

#include "../lib/core/target.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// Numbers to be sorted by keys, each with room for as many others.
template <class Key>
struct SortBuffers {
  Key* keys[2];
  std::uint32_t* numbers[2];
};

/// Puts the first of both into the order of the last `bits` bits of the keys, which have no others; equal ones keep theirs.
/// Queued, as kernels are. Returns which of both, 0 or 1, then holds the result. At most 2³¹ of them.
int radix_sort(const SortBuffers<std::uint32_t>& buffers, std::int64_t count, int bits);
int radix_sort(const SortBuffers<std::uint64_t>& buffers, std::int64_t count, int bits);

}  // namespace REEL_TARGET
}  // namespace reel::detail
