#pragma once

#include <cstdint>
#include <cstring>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "../../../core/target.h"

// Streaming stores, which bypass the caches, for outputs that would not stay in them. This header is compiled once per
// instruction set.

namespace reel::detail::inline REEL_TARGET {

/// Outputs of at least this size are written by streaming stores: half of the traffic of an ordinary write is the
/// reading of the overwritten lines.
inline constexpr std::int64_t streaming_bytes = std::int64_t{8} << 20;

/// Copies as memcpy. `end_streaming` must be called before another thread reads.
inline void copy_streaming(void* to, const void* from, std::int64_t bytes) {
  namespace hn = hwy::HWY_NAMESPACE;
  using Tag = hn::ScalableTag<std::uint8_t>;
  constexpr std::int64_t width = HWY_LANES(std::uint8_t), line = 64;
  auto* next = static_cast<std::uint8_t*>(to);
  auto* source = static_cast<const std::uint8_t*>(from);
  std::int64_t head = static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(to) % line);
  if (width == 1 || bytes < head + line) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return;
  }
  std::memcpy(next, source, static_cast<std::size_t>(head));
  std::int64_t done = head;
  for (; done + line <= bytes; done += line)
    for (std::int64_t i = 0; i < line; i += width)
      hn::Stream(hn::LoadU(Tag(), source + done + i), Tag(), next + done + i);
  std::memcpy(next + done, source + done, static_cast<std::size_t>(bytes - done));
}

inline void end_streaming() { hwy::FlushStream(); }

}  // namespace reel::detail::inline REEL_TARGET
