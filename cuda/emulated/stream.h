#pragma once

#include <functional>

#include "../device.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// Puts work behind what the stream has been given. It runs at once, unless the stream is being recorded, or the
/// environment has REEL_EMULATED_LATE=1: then when somebody waits for it, as it might on a device.
void give_to_stream(Stream stream, std::function<void()> work);

}  // namespace REEL_TARGET
}  // namespace reel::detail
