#pragma once

#include <array>
#include <cstddef>

#include "driver.h"

namespace reel::detail::inline REEL_TARGET {

/// Copies between the CPU's memory and a device's: a ring of pinned chunks, so that a copy to the device returns as
/// soon as the values are read, and long ones are read while the device copies.
class Staging {
 public:
  /// Queues a copy; `from` may be overwritten afterwards.
  void copy_in(void* to, const void* from, std::size_t bytes, Stream stream);
  /// Copies and waits.
  void copy_out(void* to, const void* from, std::size_t bytes, Stream stream);

  static constexpr std::size_t chunk_count = 4, chunk_bytes = std::size_t{1} << 22;

 private:
  struct Chunk {
    char* memory = nullptr;
    std::size_t used = 0;
    Event event = nullptr;
    bool in_flight = false;
  };
  Chunk& free_chunk();
  void leave(Chunk& chunk, Stream stream);

  std::array<Chunk, chunk_count> chunks_;
  std::size_t current_ = 0;
};

}  // namespace reel::detail::inline REEL_TARGET
