#pragma once

#include <cstddef>
#include <string>

#include "../lib/core/device_module.h"
#include "device.h"

struct CUevent_st;
struct CUgraphExec_st;

// The few calls of the CUDA runtime on which everything else here stands: driver.cpp passes them on, emulated/driver.cpp
// does on the CPU what they would do. Each throws DeviceError where the runtime refuses.

namespace reel::detail {
inline namespace REEL_TARGET {

using Event = CUevent_st*;
using GraphExecution = CUgraphExec_st*;

/// How many devices there are; if none, `absence` says why. Never throws.
int driver_device_count(std::string& absence);
DeviceDescription driver_properties(int device);
/// What the calls below act on, for this thread.
void driver_use(int device);

/// Null where there is no memory left.
void* driver_allocate(std::size_t bytes);
/// What a pool adds to each block, and what it does to one that it gives out: nothing, but for the emulated device, where
/// kernels that run over an end, or read what nobody has written, find numbers that nobody expects.
std::size_t driver_gap();
void driver_spoil(void* memory, std::size_t bytes, Stream stream);
/// Frees after the driver has shut down are ignored.
void driver_free(void* memory) noexcept;
/// What a library refused, and nobody throws, is not blamed on the next kernel.
void driver_forget_error() noexcept;
/// Of the device: free and in all.
struct DriverMemory {
  std::size_t free, total;
};
DriverMemory driver_memory();
/// Memory of the CPU that the device reaches under the same address.
void* driver_allocate_pinned(std::size_t bytes);
void driver_free_pinned(void* memory) noexcept;

Stream driver_make_stream();
void driver_wait(Stream stream);
Event driver_make_event();
void driver_free_event(Event event) noexcept;
void driver_record(Event event, Stream stream);
/// What is queued on the stream from now on waits for the event.
void driver_wait_for(Stream stream, Event event);
bool driver_is_done(Event event);
void driver_wait(Event event);

/// All are queued; memory of the CPU must be pinned, or is copied while the call lasts.
void driver_copy(void* to, const void* from, std::size_t bytes, Stream stream);
void driver_copy_between(int to_device, void* to, int from_device, const void* from, std::size_t bytes, Stream stream);
void driver_fill_with_zeros(void* to, std::size_t bytes, Stream stream);

/// What the stream is given is recorded from here on, and does not run.
void driver_begin_recording(Stream stream);
/// What was recorded, ready to run as a whole.
GraphExecution driver_end_recording(Stream stream);
void driver_abandon_recording(Stream stream) noexcept;
void driver_launch(GraphExecution graph, Stream stream);
void driver_free_graph(GraphExecution graph) noexcept;

}  // namespace REEL_TARGET
}  // namespace reel::detail
