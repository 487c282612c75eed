#pragma once

#include "../../kernels/resample.h"

namespace reel::detail {

/// Fills the slots of `unfold` and `fold`.
void fill_unfold(ResampleKernels& table);

}  // namespace reel::detail
