#pragma once

#include "../../../core/target.h"
#include "../../../kernels/kernel_table.h"

namespace reel::detail::inline REEL_TARGET {

/// The kernel of PoolingKernels::running_extreme.
void running_extreme(const View& values, const View& indices, const View& x, int axis, bool largest);

}  // namespace reel::detail::inline REEL_TARGET
