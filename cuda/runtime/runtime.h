#pragma once

#include <reel/location.h>

#include "../../lib/core/device/device_module.h"
#include "queue.h"

// A thread's state on each device, and the devices' memory. For host code of this folder only.

namespace reel::detail::inline REEL_TARGET {

/// This thread's queue on a device, which becomes the current one. Throws: the errors that its kernels have found.
Queue& enter_device_of_thread(int device);
Queue& current_queue();
/// The current queue; null if the thread has entered no device.
Queue* current_queue_or_null() noexcept;

/// Makes the current queue wait for work of other threads on an op's operands, and marks their memory as used by it.
void prepare_operands(const Call& call);
/// Makes the current queue wait for work of other threads on one tensor that it reads or, if `writes`, writes.
void prepare_operand(const Body& x, bool writes);

DeviceBlock* allocate_block(int device, std::size_t bytes, const char* op, Location where);
void free_block(DeviceBlock* freed) noexcept;
/// Reserves memory for the current thread. Throws: MemoryError.
void reserve_block(int device, std::size_t bytes, Location where);

/// See DeviceModule.
std::uint32_t record_fingerprint_of(const Body& x);
void check_values_of(std::uint32_t recorded, const Body& x, const char* op, Location where, int result);

/// Called before the CPU waits for a queue. Throws: Error while a graph is recorded, naming the running op.
void notify_wait_for(const Queue& queue, const char* reason);
/// Waits for all queued work. Throws: as notify_wait_for; the errors that kernels have found.
void wait_for_queue(Queue& queue, const char* reason);

/// Returns the memory that the threads of a device keep for reuse.
void release_caches(int device) noexcept;

}  // namespace reel::detail::inline REEL_TARGET
