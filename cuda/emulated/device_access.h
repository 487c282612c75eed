#pragma once

#include "../../lib/core/target.h"

namespace reel::detail::inline REEL_TARGET {

/// While one lives, the memory of the emulated device is accessible; otherwise an access is a segmentation fault, as
/// with a real device.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

}  // namespace reel::detail::inline REEL_TARGET
