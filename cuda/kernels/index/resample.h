#pragma once

#include "../../../lib/core/target.h"
#include "../../../lib/kernels/resample.h"

// The functions that fill the resampling table, one for each file.

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_interpolate(ResampleKernels& table);
void fill_unfold(ResampleKernels& table);

}  // namespace REEL_TARGET
}  // namespace reel::detail
