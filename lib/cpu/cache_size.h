#pragma once

#include <cstdint>

#include <unistd.h>

namespace reel::detail {

/// The size of a processor's second-level cache, in bytes; a megabyte where the system does not tell.
inline std::int64_t second_level_cache_bytes() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  static const std::int64_t told = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (told > 0) return told;
#endif
  return 1 << 20;
}

}  // namespace reel::detail
