#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <reel/detail/immovable.h>

#include "../device/fault_log.h"
#include "memory_pool.h"
#include "staging.h"

namespace reel::detail::inline REEL_TARGET {

class Capture;

/// A thread's state on a device: a stream and its memory. Queues are never destroyed, because tensors outlive their
/// threads; the queue of a thread that has ended is adopted by the next one that starts.
struct Queue : private Immovable {
  explicit Queue(int device);

  /// An event after all work queued so far, to be freed by the caller. May be called from any thread. While a graph is
  /// being recorded, earlier work is already finished.
  Event record() const;
  /// Waits until all work queued so far has finished. May be called from any thread, also while a graph is being
  /// recorded.
  void finish() const;
  /// Makes work that is queued from now on wait for all work that the other queue has so far.
  void wait_for(const Queue& other) const;

  int device;
  Stream stream = nullptr;
  int multiprocessors = 0;
  MemoryPool memory;
  MemoryPool* pool = &memory;               ///< where blocks come from at present: a graph has a pool of its own
  std::atomic<Capture*> capture = nullptr;  ///< the graph that is being recorded
  mutable std::mutex capture_mutex;         ///< held while recording begins, because an event in between would break it
  FaultLog faults;
  Staging staging;
  Block* fingerprint_ring = nullptr;    ///< a ring of fingerprints
  std::uint32_t fingerprint_count = 0;  ///< in total
};

/// While it lives, the calls of the driver act on a device.
class OnDevice : Immovable {
 public:
  explicit OnDevice(int device);
  ~OnDevice();

 private:
  int before_;
};

DeviceAccount& account_of(int device);
/// The queues of all threads on a device.
std::vector<Queue*> queues_of(int device);

}  // namespace reel::detail::inline REEL_TARGET
