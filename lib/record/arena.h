#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace reel::detail {

/// Memory that is handed out in order and taken back all at once. A rewind keeps the memory for the next filling; after
/// each filling that needs less, an eighth of the capacity is released.
class Arena {
 public:
  /// Returns `bytes` of memory aligned to 8 bytes.
  void* allocate(std::size_t bytes) {
    bytes = (bytes + 7) & ~std::size_t{7};
    if (static_cast<std::size_t>(end_ - next_) < bytes) [[unlikely]]
      advance(bytes);
    std::byte* block = next_;
    next_ += bytes;
    return block;
  }

  /// Returns true if `bytes`, a multiple of 8, can be handed out without a call to the system.
  bool has(std::size_t bytes) const { return static_cast<std::size_t>(end_ - next_) >= bytes; }
  /// Ensures that `has(bytes)` holds. Throws: std::bad_alloc.
  void reserve(std::size_t bytes) {
    if (!has(bytes)) advance(bytes);
  }
  void* take(std::size_t bytes) {
    std::byte* block = next_;
    next_ += bytes;
    return block;
  }

  void rewind() {
    std::size_t needed = 0;
    for (std::size_t i = 0; i < chunks_.size() && i <= current_; ++i) needed += chunks_[i].bytes;
    kept_ = std::max(needed, kept_ - kept_ / 8);
    while (chunks_.size() > 1 && capacity_ - chunks_.back().bytes >= kept_) {
      capacity_ -= chunks_.back().bytes;
      chunks_.pop_back();
    }
    used_before_ = 0;
    current_ = 0;
    start_ = next_ = chunks_.empty() ? nullptr : chunks_[0].start.get();
    end_ = chunks_.empty() ? nullptr : next_ + chunks_[0].bytes;
  }

  /// Returns all memory to the system; nothing may have been handed out since the last rewind.
  void release() { *this = {}; }

  /// Bytes handed out since the last rewind.
  std::size_t used() const { return used_before_ + static_cast<std::size_t>(next_ - start_); }
  /// Bytes taken from the system.
  std::size_t capacity() const { return capacity_; }

 private:
  struct Chunk {
    std::unique_ptr<std::byte[]> start;
    std::size_t bytes;
  };
  static constexpr std::size_t first_bytes = std::size_t{1} << 16;
  static constexpr std::size_t most_bytes = std::size_t{1} << 22;

  void advance(std::size_t bytes) {
    // An exception leaves the arena unchanged.
    std::size_t next = chunks_.empty() ? 0 : current_ + 1;
    if (next == chunks_.size() || chunks_[next].bytes < bytes) {
      std::size_t grown = chunks_.empty() ? first_bytes : std::min(most_bytes, chunks_.back().bytes * 2);
      std::size_t size = std::max(grown, bytes);
      chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(next),
                     Chunk{std::make_unique_for_overwrite<std::byte[]>(size), size});
      capacity_ += size;
    }
    if (next > current_) {
      used_before_ += static_cast<std::size_t>(next_ - start_);
      current_ = next;
    }
    start_ = next_ = chunks_[current_].start.get();
    end_ = next_ + chunks_[current_].bytes;
  }

  std::vector<Chunk> chunks_;
  std::size_t current_ = 0;
  std::size_t used_before_ = 0;
  std::size_t capacity_ = 0;
  std::size_t kept_ = 0;
  const std::byte* start_ = nullptr;
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
};

}  // namespace reel::detail
