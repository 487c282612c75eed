#pragma once

#include <reel/detail/view.h>

#include "../lib/core/target.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// out = or += a b for the last two axes, by a library of the device's maker. False, with nothing done, where it has no
/// kernel for such operands. `out` is contiguous and not empty; a and b have lines: see lines.h.
bool multiply_by_library(const View& out, const View& a, const View& b, bool adds);
/// The same of single matrices, plus a number for each column; `bias` has no gaps.
bool multiply_by_library(const View& out, const View& a, const View& b, const void* bias);

}  // namespace REEL_TARGET
}  // namespace reel::detail
