#pragma once

#include "../../kernels/resample.h"

// The functions that fill the resampling table, one for each file.

namespace reel::detail {

void fill_interpolate(ResampleKernels& table);
void fill_unfold(ResampleKernels& table);

}  // namespace reel::detail
