#pragma once

#include <cstddef>
#include <string>

#include "../../lib/core/device/device_module.h"
#include "../device/device.h"

struct CUevent_st;
struct CUgraphExec_st;

// The few calls of the CUDA runtime on which all other files depend: driver.cpp forwards them, emulated/driver.cpp
// emulates them on the CPU. Each throws DeviceError if the runtime refuses.

namespace reel::detail::inline REEL_TARGET {

using Event = CUevent_st*;
using GraphExecution = CUgraphExec_st*;

/// The number of devices; if it is 0, `absence` says why. Never throws.
int driver_device_count(std::string& absence);
DeviceDescription driver_properties(int device);
/// Selects the device of the calls below, for this thread.
void driver_use(int device);

/// Returns null if no memory is left.
void* driver_allocate(std::size_t bytes);
/// The bytes that a pool adds to each block, and a function that it applies to one that it hands out. On a real device
/// both do nothing; on the emulated device kernels that run over an end, or read uninitialised memory, find unexpected
/// numbers.
std::size_t driver_gap();
void driver_spoil(void* memory, std::size_t bytes, Stream stream);
/// Does nothing after the driver has shut down.
void driver_free(void* memory) noexcept;
/// Clears the sticky error after a library call that was refused and is not reported, so that the next kernel is not
/// blamed.
void driver_forget_error() noexcept;
/// The device's memory in bytes: free and in all.
struct DriverMemory {
  std::size_t free, total;
};
DriverMemory driver_memory();
/// Pinned memory of the CPU, which the device accesses at equal addresses.
void* driver_allocate_pinned(std::size_t bytes);
void driver_free_pinned(void* memory) noexcept;

Stream driver_make_stream();
void driver_wait(Stream stream);
Event driver_make_event();
void driver_free_event(Event event) noexcept;
void driver_record(Event event, Stream stream);
/// Makes work that is queued on the stream from now on wait for the event.
void driver_wait_for(Stream stream, Event event);
bool driver_is_done(Event event);
void driver_wait(Event event);

/// Queues a copy; memory of the CPU must be pinned, or is copied during the call.
void driver_copy(void* to, const void* from, std::size_t bytes, Stream stream);
void driver_copy_between(int to_device, void* to, int from_device, const void* from, std::size_t bytes, Stream stream);
void driver_fill_with_zeros(void* to, std::size_t bytes, Stream stream);

/// Begins a recording: work queued on the stream is recorded instead of run.
void driver_begin_recording(Stream stream);
/// Ends the recording and returns an executable graph.
GraphExecution driver_end_recording(Stream stream);
void driver_abandon_recording(Stream stream) noexcept;
void driver_launch(GraphExecution graph, Stream stream);
void driver_free_graph(GraphExecution graph) noexcept;

}  // namespace reel::detail::inline REEL_TARGET
