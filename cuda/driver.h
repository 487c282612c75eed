#pragma once

#include <cstddef>
#include <string>

#include "device.h"

struct CUevent_st;

// The few calls of the CUDA runtime on which everything else here stands: driver.cpp passes them on, emulated/driver.cpp
// does on the CPU what they would do. Each throws DeviceError where the runtime refuses.

namespace reel::detail {
inline namespace REEL_TARGET {

using Event = CUevent_st*;

struct DeviceProperties {
  std::string name;
  std::size_t bytes;  // of its memory
  int multiprocessors;
  int major, minor;  // compute capability
};

/// How many devices there are; if none, `absence` says why. Never throws.
int driver_device_count(std::string& absence);
DeviceProperties driver_properties(int device);
/// What the calls below act on, for this thread.
void driver_use(int device);

/// Null where there is no memory left.
void* driver_allocate(std::size_t bytes);
/// Frees after the driver has shut down are ignored.
void driver_free(void* memory) noexcept;
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

}  // namespace REEL_TARGET
}  // namespace reel::detail
