#pragma once

#include <cstdint>

#include "../lib/core/target.h"

// What threads may do to one place in any order, and leave the same there: integers alone.

namespace reel::detail {
inline namespace REEL_TARGET {

REEL_DEVICE inline void raise_to(std::uint32_t* place, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  atomicMax(place, value);
#else
  if (*place < value) *place = value;
#endif
}

REEL_DEVICE inline void lower_to(unsigned long long* place, unsigned long long value) {
#if defined(__CUDA_ARCH__)
  atomicMin(place, value);
#else
  if (*place > value) *place = value;
#endif
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
