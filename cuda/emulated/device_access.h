#pragma once

#include <reel/detail/immovable.h>

#include "../../lib/core/target.h"

namespace reel::detail::inline REEL_TARGET {

/// While one lives, the memory of the emulated device is accessible; otherwise an access is a segmentation fault, as
/// with a real device.
class DeviceAccess : Immovable {
 public:
  DeviceAccess();
  ~DeviceAccess();
};

}  // namespace reel::detail::inline REEL_TARGET
