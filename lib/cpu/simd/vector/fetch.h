#pragma once

#include <cstdint>

#include <hwy/cache_control.h>

#include "../../../core/target.h"

// This header is compiled once per instruction set.

namespace reel::detail::inline REEL_TARGET {

/// Prefetches elements that are read soon. The processor itself prefetches no further than to the end of a page, and a
/// row is often no longer than that.
template <class T>
void fetch(const T* from, std::int64_t count) {
  constexpr std::int64_t line = 64 / sizeof(T);
  for (std::int64_t i = 0; i < count; i += line) hwy::Prefetch(from + i);
}

}  // namespace reel::detail::inline REEL_TARGET
