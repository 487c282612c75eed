#pragma once

#include <span>
#include <string>

#include "group.h"

namespace reel::detail {

/// Runs calls both joined and one by one, on copies of their operands, and compares results and gradients. Returns an
/// empty text, or which call's result or gradient differs by more than rounding; `differing` is its index.
std::string verify_group(Context& context, std::span<QueuedCall* const> calls, const Joining& joining,
                         std::size_t& differing);

}  // namespace reel::detail
