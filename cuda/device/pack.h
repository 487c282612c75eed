#pragma once

#include <cstddef>
#include <cstdint>

#include <reel/detail/view.h>

#include "../../lib/core/target.h"

namespace reel::detail::inline REEL_TARGET {

/// Adjacent elements, loaded or stored in as few accesses as possible: of 16 bytes each, the most that a thread accesses
/// at a time.
template <class T, int lanes>
struct alignas(sizeof(T) * lanes < 16 ? sizeof(T) * lanes : 16) Pack {
  T element[lanes];
};

/// The number of elements in 16 bytes.
template <class T>
constexpr int full_lanes = static_cast<int>(16 / sizeof(T));

template <class T>
constexpr bool is_aligned(const View& view, int lanes) {
  return reinterpret_cast<std::uintptr_t>(view.data) % (sizeof(T) * static_cast<std::size_t>(lanes)) == 0;
}

}  // namespace reel::detail::inline REEL_TARGET
