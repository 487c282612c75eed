#pragma once

#include <string>

#include <reel/device.h>

namespace reel::debug {

/// The call sites whose tensors of this thread on a device hold most memory: "3.2 GB at model.cpp:12 (4 tensors), …";
/// empty if there are none.
std::string largest_tensors(Device device);

}  // namespace reel::debug
