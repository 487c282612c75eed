#pragma once

#include <cstdint>

#include <hwy/highway.h>

#include "../../../core/target.h"

namespace reel::detail::inline REEL_TARGET {

namespace hn = hwy::HWY_NAMESPACE;

/// Copies every nth element: to[j] = from[n j].
template <int n, class T>
void copy_every(T* to, const T* from, std::int64_t count) {
  const hn::ScalableTag<T> tag;
  constexpr std::int64_t lanes = HWY_LANES(T);
  std::int64_t j = 0;
  for (; j + lanes < count; j += lanes) {  // the last vector would read behind the last element
    hn::Vec<decltype(tag)> parts[3];
    if constexpr (n == 2) hn::LoadInterleaved2(tag, from + n * j, parts[0], parts[1]);
    if constexpr (n == 3) hn::LoadInterleaved3(tag, from + n * j, parts[0], parts[1], parts[2]);
    hn::StoreU(parts[0], tag, to + j);
  }
  for (; j < count; ++j) to[j] = from[n * j];
}

}  // namespace reel::detail::inline REEL_TARGET
