#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "fault_log.h"
#include "memory_pool.h"
#include "staging.h"

namespace reel::detail {
inline namespace REEL_TARGET {

class Capture;

/// What a thread has on a device: a stream, whose memory is its own. Queues are never destroyed, because tensors outlive
/// their threads; that of a thread which has ended serves the next one that starts.
struct Queue {
  explicit Queue(int device);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  /// An event behind all that has been queued so far, to be freed by the caller. From any thread. What it had before a
  /// graph is being recorded is done by then.
  Event record() const;
  /// Until all that has been queued so far is done. From any thread, also while a graph is being recorded.
  void finish() const;
  /// Lets what is queued from now on wait for what the other has been given so far.
  void wait_for(const Queue& other) const;

  int device;
  Stream stream = nullptr;
  int multiprocessors = 0;
  MemoryPool memory;
  MemoryPool* pool = &memory;               ///< where blocks come from now: a graph has a pool of its own
  std::atomic<Capture*> capture = nullptr;  ///< the graph that is being recorded
  mutable std::mutex capture_mutex;         ///< while recording begins: an event that comes in between would break it
  FaultLog faults;
  Staging staging;
  Block* noted_values = nullptr;        ///< fingerprints, which go round
  std::uint32_t noted_value_count = 0;  ///< ever
};

/// While it lives, the calls of the driver act on a device.
class OnDevice {
 public:
  explicit OnDevice(int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_;
};

DeviceAccount& account_of(int device);
/// Those of all threads on a device.
std::vector<Queue*> queues_of(int device);

}  // namespace REEL_TARGET
}  // namespace reel::detail
