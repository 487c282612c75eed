#pragma once

#include <cstdint>

#include "../../lib/core/target.h"

// Atomic operations whose result does not depend on the order of threads: on integers alone.

namespace reel::detail::inline REEL_TARGET {

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

}  // namespace reel::detail::inline REEL_TARGET
