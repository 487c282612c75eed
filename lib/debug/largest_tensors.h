#pragma once

#include <string>

#include <reel/device.h>

namespace reel::debug {

/// Of this thread's living tensors on a device, the lines that hold most: "3.2 GB at model.cpp:12 (4 tensors), …"; empty
/// where there are none.
std::string largest_tensors(Device device);

}  // namespace reel::debug
