#pragma once

#include <cstdint>

#include "../../core/target.h"

namespace reel::detail::inline REEL_TARGET {

/// The factor ±1 that fixes the sign of a vector which is determined up to sign: the first element that is at least
/// half as large as the largest becomes positive. So decompositions give equal results on all backends.
template <class T>
REEL_HOST_DEVICE T sign_of_vector(const T* x, std::int64_t length, std::int64_t step) {
  auto size = [&](std::int64_t i) { return x[i * step] < 0 ? -x[i * step] : x[i * step]; };
  T largest = 0;
  for (std::int64_t i = 0; i < length; ++i) largest = size(i) > largest ? size(i) : largest;
  for (std::int64_t i = 0; i < length; ++i)
    if (size(i) >= largest / 2) return x[i * step] < 0 ? T(-1) : T(1);
  return 1;
}

}  // namespace reel::detail::inline REEL_TARGET
