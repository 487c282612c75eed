#pragma once

#include <sys/single_threaded.h>
#include <atomic>
#include <cstdint>

#include <reel/detail/view.h>
#include <reel/device.h>

namespace reel::detail {

struct Storage;
struct Leaf;

/// A count of owners: plain arithmetic while the process has one thread, atomic afterwards.
class ReferenceCount {
 public:
  void retain() noexcept {
    if (__libc_single_threaded)
      count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    else
      count_.fetch_add(1, std::memory_order_relaxed);
  }
  /// True if this was the last owner.
  bool release() noexcept {
    // Only its owner can raise a count of one, so the read-modify-write is not needed.
    std::uint32_t count = count_.load(std::memory_order_acquire);
    if (count == 1) return true;
    if (__libc_single_threaded) {
      count_.store(count - 1, std::memory_order_relaxed);
      return false;
    }
    return count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  bool unique() const noexcept { return count_.load(std::memory_order_acquire) == 1; }
  std::uint32_t count() const noexcept { return count_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint32_t> count_{1};
};

/// The object that a `Tensor` points to. Sizes and strides follow it in memory, `rank` of each.
struct Body : View {
  enum Mark : std::uint8_t {
    single_block = 1,  ///< its elements lie behind it, and it has no leaf
    grouped = 2,       ///< an example's part of elements that a group of batch_map made, or a view of one
    viewed = 4,        ///< of a grouped tensor: there are, or were, others of its example that share its elements
    pending = 8,       ///< its elements are computed later, by a call of batch_map of which `slot_version` is the depth
    to_track = 16,     ///< of a pending tensor: a tape will track it
  };
  ReferenceCount references;
  Device device;
  bool requires_grad;
  std::uint8_t marks;  ///< bits of `Mark`
  std::uint32_t slot;  ///< number on the tape of `epoch`; without one, during which custom op the tensor was made
  std::uint32_t slot_version;  ///< of the storage when the slot was given; without one, when the tensor was made
  std::int32_t line;           ///< where the tensor was made
  std::uint32_t serial;        ///< the number that the first recording which saw the tensor gave it; 0: none
  const char* file;
  std::atomic<std::uint64_t> epoch;  ///< which tape list, and which filling of it, gave the slot; 0: none
  Storage* storage;
  Leaf* leaf;  ///< set by requires_grad()

  std::int64_t* extents() { return reinterpret_cast<std::int64_t*>(this + 1); }
};

/// Frees a body without owners.
void destroy(Body* body) noexcept;

}  // namespace reel::detail
