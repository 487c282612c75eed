#pragma once

#include "../../../lib/core/target.h"
#include "../../../lib/kernels/kernel_table.h"

namespace reel::detail::inline REEL_TARGET {

/// Copies elements of one dtype; x broadcasts.
void move_elements(const View& out, const View& x);
/// Copies elements and converts them to the dtype of `out`; x broadcasts.
void convert_elements(const View& out, const View& x);

}  // namespace reel::detail::inline REEL_TARGET
