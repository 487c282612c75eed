#pragma once

#include <reel/dtype.h>
#include <reel/location.h>
#include <reel/shape.h>

#include "../lib/core/device_module.h"
#include "driver.h"

// What a thread has on each device, and the memory of the devices. For host code of this folder alone.

namespace reel::detail {
inline namespace REEL_TARGET {

/// The op in whose name a fault is thrown.
struct FaultSource {
  const char* op;
  Location where;
  Shape shape;  // of its first input
  DType dtype;
};
/// The op that runs now.
FaultSource running_op();

[[noreturn]] void throw_fault(const FaultRecord& found, const FaultSource& source);
/// Throws what kernels of this thread have found wrong so far.
void throw_faults();

void enter_device_of_thread(int device);
DeviceBlock* allocate_block(int device, std::size_t bytes, const char* op, Location where);
void free_block(DeviceBlock* block) noexcept;

}  // namespace REEL_TARGET
}  // namespace reel::detail
