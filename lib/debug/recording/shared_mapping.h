#pragma once

#include <atomic>
#include <cstddef>

#include <reel/detail/immovable.h>

namespace reel::debug {

/// Bytes of a file, shared with its readers, which belong to the thread that maps them. If another process truncates the
/// file, this thread's next access does not end the program by SIGBUS, but finds zeros, in memory of its own.
class SharedMapping : detail::Immovable {
 public:
  /// Maps bytes of an open file; where that fails, `data` is null, and errno says why.
  SharedMapping(int file, std::size_t offset, std::size_t bytes) noexcept;
  ~SharedMapping();

  char* data() const { return data_; }
  /// True once an access has found that the file was truncated.
  bool is_truncated() const { return is_truncated_.load(std::memory_order_relaxed); }

 private:
  struct Handler;

  char* data_ = nullptr;
  std::size_t bytes_;
  std::atomic<bool> is_truncated_ = false;
  SharedMapping* older_ = nullptr;  // of this thread
};

}  // namespace reel::debug
