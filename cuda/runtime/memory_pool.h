#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include <reel/detail/immovable.h>

#include "../../lib/core/device/device_module.h"
#include "driver.h"

namespace reel::detail::inline REEL_TARGET {

class MemoryPool;
struct Queue;

/// Memory that a pool has handed out, or keeps for reuse. A block in use belongs to its tensor, which may move between
/// threads; a free one belongs to its pool.
struct Block : DeviceBlock {
  MemoryPool* pool = nullptr;
  std::size_t bytes = 0;
  Block* slab = nullptr;    ///< of a small block: the block from which it was cut
  Block* before = nullptr;  ///< of a large block: its neighbours in the driver's allocation
  Block* after = nullptr;
  Block* next = nullptr;    ///< of a small block: the next free one
  std::int64_t in_use = 0;  ///< of a slab: the number of its small blocks in use
  int size_class = -1;      ///< of a small block
  bool is_free = false;

  /// A queue other than the pool's has used it; the following members are guarded by the pool.
  std::atomic<bool> shared = false;
  Queue* writer = nullptr;    ///< the last queue that has written to it; null: the pool's
  std::vector<Queue*> users;  ///< other queues that have used it
};

/// The statistics and limit that all pools of a device share.
struct DeviceAccount {
  std::atomic<std::size_t> used = 0, peak = 0, reserved = 0;
  std::atomic<std::size_t> limit = SIZE_MAX, reservation = 0;

  void take(std::size_t bytes);
  /// Returns true if the limit leaves room for `bytes`, and counts them as reserved.
  bool reserve(std::size_t bytes);
};

/// The memory that one queue's work uses. Freed memory is reused without waiting, because the queue runs its work in
/// order; a block that other queues have used, only when they have finished with it. Small blocks are cut from slabs
/// and keep their size; large ones are split and merged with their neighbours. Any thread may free; only the queue's
/// own thread allocates. If REEL_CUDA_NO_CACHE is set, nothing is cached: each block is a driver allocation, except for
/// those of a graph.
class MemoryPool : Immovable {
 public:
  MemoryPool(Queue& queue, DeviceAccount& account);
  ~MemoryPool();

  Queue& queue() const { return queue_; }
  /// Returns null if neither the cache, the driver nor the limit has room. `spoils`: see driver_spoil.
  Block* take(std::size_t bytes, bool spoils = true);
  void give(Block* block) noexcept;
  /// Destroys the pool when the last of its blocks is freed.
  static void retire(std::unique_ptr<MemoryPool> pool) noexcept;

  /// Allocates memory from the driver in advance. Returns false if there is no room.
  bool reserve(std::size_t bytes);
  /// Waits for the queues that still use freed blocks.
  void wait_for_users();
  /// Returns unused memory to the driver, except for the reservation. The queue must have finished using it.
  void release(bool keeps_reservation = true) noexcept;
  /// Records that a queue reads or writes a block. Returns the queues for which it has to wait first.
  std::vector<Queue*> record_use(Block& block, Queue& user, bool writes);

  static constexpr std::size_t most_small = std::size_t{1} << 17, slab_bytes = std::size_t{1} << 21;

 private:
  struct BySize {
    using is_transparent = void;
    bool operator()(const Block* a, const Block* b) const {
      return a->bytes != b->bytes ? a->bytes < b->bytes : a->data < b->data;
    }
    bool operator()(const Block* a, std::size_t bytes) const { return a->bytes < bytes; }
    bool operator()(std::size_t bytes, const Block* b) const { return bytes < b->bytes; }
  };
  // A freed block that other queues may still use.
  struct Awaited {
    Block* block;
    std::vector<Event> events;
  };

  Block* take_alone(std::size_t bytes);
  Block* take_small(std::size_t bytes);
  Block* take_large(std::size_t bytes);
  Block* cut(std::size_t bytes, int size_class);
  bool grow(std::size_t bytes);
  bool grow_by(std::size_t bytes);
  void split(Block* block, std::size_t bytes);
  void take_back(Block* block) noexcept;
  void put(Block* block) noexcept;
  void put_alone(Block* block) noexcept;
  void put_large(Block* block) noexcept;
  void put_awaited(bool waits) noexcept;
  void drop_empty_slabs() noexcept;
  void await_users(Block* block);

  Queue& queue_;
  DeviceAccount& account_;
  std::mutex mutex_;
  static constexpr int class_count = 32;
  std::array<Block*, class_count> small_ = {};
  std::set<Block*, BySize> large_;
  Block* slab_ = nullptr;  // from which small blocks are cut at present
  std::size_t slab_used_ = 0;
  std::vector<std::unique_ptr<Block>> carved_;  // all small blocks
  std::vector<Awaited> awaited_;
  std::size_t in_use_ = 0;
  bool retired_ = false;
};

}  // namespace reel::detail::inline REEL_TARGET
