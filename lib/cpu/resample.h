#pragma once

#include "../core/kernels/resample.h"

// The parts of the resampling table, one a file.

namespace reel::detail {

void fill_interpolate(ResampleKernels& table);
void fill_unfold(ResampleKernels& table);

}  // namespace reel::detail
