#pragma once

#include <cstdint>

#include "../../../lib/core/target.h"

namespace reel::detail::inline REEL_TARGET {

/// Writes first, first + step, …: `count` addresses, `step` bytes apart, to the device's memory.
void write_addresses(void* to, const void* first, std::int64_t step, std::int64_t count);

}  // namespace reel::detail::inline REEL_TARGET
