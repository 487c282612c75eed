#pragma once

#include "../../lib/core/target.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// While one lives, the memory of the emulated device can be reached; else to touch it is a segmentation fault, as it is
/// with a real one's.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

}  // namespace REEL_TARGET
}  // namespace reel::detail
