#pragma once

#include "../../../lib/core/target.h"
#include "../../../lib/kernels/resample.h"

namespace reel::detail::inline REEL_TARGET {

/// Fills the slots of `unfold` and `fold`.
void fill_unfold(ResampleKernels& table);

}  // namespace reel::detail::inline REEL_TARGET
