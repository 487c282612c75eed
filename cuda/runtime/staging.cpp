#include "staging.h"

#include <algorithm>
#include <cstring>

namespace reel::detail::inline REEL_TARGET {

// The current chunk, after the device has finished with it.
Staging::Chunk& Staging::free_chunk() {
  Chunk& chunk = chunks_[current_];
  if (!chunk.memory) {
    chunk.memory = static_cast<char*>(driver_allocate_pinned(chunk_bytes));
    chunk.event = driver_make_event();
  }
  if (chunk.in_flight) {
    driver_wait(chunk.event);
    chunk.in_flight = false;
    chunk.used = 0;
  }
  return chunk;
}

// Hands a chunk to the device, which uses it until its event.
void Staging::leave(Chunk& chunk, Stream stream) {
  driver_record(chunk.event, stream);
  chunk.in_flight = true;
  current_ = (current_ + 1) % chunk_count;
}

void Staging::copy_in(void* to, const void* from, std::size_t bytes, Stream stream) {
  for (std::size_t done = 0; done < bytes;) {
    Chunk& chunk = free_chunk();
    std::size_t part = std::min(bytes - done, chunk_bytes - chunk.used);
    std::memcpy(chunk.memory + chunk.used, static_cast<const char*>(from) + done, part);
    driver_copy(static_cast<char*>(to) + done, chunk.memory + chunk.used, part, stream);
    done += part;
    // The next copy starts on a cache line of its own.
    chunk.used = std::min(chunk_bytes, (chunk.used + part + 63) / 64 * 64);
    if (chunk.used == chunk_bytes) leave(chunk, stream);
  }
}

void Staging::copy_out(void* to, const void* from, std::size_t bytes, Stream stream) {
  if (chunks_[current_].used > 0 && !chunks_[current_].in_flight) leave(chunks_[current_], stream);
  std::size_t asked = 0, first = current_;
  for (std::size_t done = 0; done < bytes;) {
    while (asked < bytes && asked - done < (chunk_count - 1) * chunk_bytes) {
      Chunk& chunk = free_chunk();
      std::size_t part = std::min(bytes - asked, chunk_bytes);
      driver_copy(chunk.memory, static_cast<const char*>(from) + asked, part, stream);
      asked += part;
      chunk.used = chunk_bytes;
      leave(chunk, stream);
    }
    Chunk& chunk = chunks_[first];
    std::size_t part = std::min(bytes - done, chunk_bytes);
    driver_wait(chunk.event);
    std::memcpy(static_cast<char*>(to) + done, chunk.memory, part);
    chunk.in_flight = false;
    chunk.used = 0;
    done += part;
    first = (first + 1) % chunk_count;
  }
}

}  // namespace reel::detail::inline REEL_TARGET
