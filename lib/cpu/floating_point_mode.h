#pragma once

namespace reel::detail {

/// How a thread calculates: its rounding, and whether it flushes denormals. A thread begins with that of the one which
/// starts it. Whoever works for another thread takes over its mode, so that bits do not depend on who does what.
using FloatingPointMode = unsigned;

FloatingPointMode floating_point_mode();
void set_floating_point_mode(FloatingPointMode mode);

}  // namespace reel::detail
