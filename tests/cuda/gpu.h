#pragma once

#include <reel/reel.h>

#include <cstdlib>

#include "catch.h"
#include "core/device/device_module.h"

// The tests in this folder run on the device of REEL_CUDA_MODULE: the emulated one or a GPU.

namespace reel_test {

inline constexpr reel::Device gpu{reel::Device::Type::cuda, 0};

/// Skips the test if there is no device. A module that cannot be opened is an error.
inline bool lacks_device() {
  std::string absence = reel::detail::device_module_absence();
  if (!absence.empty() && std::getenv("REEL_CUDA_MODULE")) FAIL(absence);
  if (absence.empty() && reel::detail::device_module().device_count() == 0)
    absence = reel::detail::device_module().absence();
  if (!absence.empty()) skip(absence);
  return !absence.empty();
}

}  // namespace reel_test
