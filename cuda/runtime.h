#pragma once

#include <reel/location.h>

#include "../lib/core/device_module.h"
#include "queue.h"

// What a thread has on each device, and the memory of the devices. For host code of this folder alone.

namespace reel::detail {
inline namespace REEL_TARGET {

/// The queue of this thread on a device, which becomes the current one. Throws: what its kernels have found wrong.
Queue& enter_device_of_thread(int device);
Queue& current_queue();
/// Null where the thread has entered no device.
Queue* current_queue_or_null() noexcept;

/// Lets the current queue wait for what other threads have queued for an op's operands, and their memory for the op.
void prepare_operands(const Call& call);
/// The same for one tensor that is read, or written to, on the current queue.
void prepare_operand(const Body& x, bool writes);

DeviceBlock* allocate_block(int device, std::size_t bytes, const char* op, Location where);
void free_block(DeviceBlock* block) noexcept;
/// Takes memory for the current thread, and keeps it. Throws: MemoryError.
void reserve_block(int device, std::size_t bytes, Location where);

/// See DeviceModule.
std::uint32_t note_values_of(const Body& x);
void check_values_of(std::uint32_t noted, const Body& x, const char* op, Location where, int number);

/// Before the CPU waits for a queue. Throws: Error while a graph is recorded, naming the op that runs.
void note_wait_for(const Queue& queue, const char* reason);
/// Waits for all that has been queued. Throws: as note_wait_for; what kernels have found wrong.
void wait_for_queue(Queue& queue, const char* reason);

/// Gives back what the threads of a device keep for reuse.
void release_caches(int device) noexcept;

}  // namespace REEL_TARGET
}  // namespace reel::detail
