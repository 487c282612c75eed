#pragma once

namespace reel::detail {

/// A thread's rounding mode and whether it flushes denormals. A thread inherits the mode of the one that starts it. A
/// thread that works for another one adopts its mode, so that bits do not depend on the division of work.
using FloatingPointMode = unsigned;

FloatingPointMode floating_point_mode();
void set_floating_point_mode(FloatingPointMode mode);

}  // namespace reel::detail
