#pragma once

#include <functional>

#include "../device/device.h"

namespace reel::detail::inline REEL_TARGET {

/// Queues work on a stream. It runs at once, unless the stream is being recorded, or the environment has
/// REEL_EMULATED_LATE=1: then it runs when a thread waits for it, as it might on a device.
void give_to_stream(Stream stream, std::function<void()> work);

}  // namespace reel::detail::inline REEL_TARGET
