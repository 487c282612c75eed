#pragma once

#include "../../lib/core/target.h"

namespace reel::detail::inline REEL_TARGET {

/// Returns true while a graph records the work that this thread queues.
bool records_graph();

}  // namespace reel::detail::inline REEL_TARGET
