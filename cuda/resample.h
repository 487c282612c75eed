#pragma once

#include "../lib/core/kernels/resample.h"
#include "../lib/core/target.h"

// The parts of the resampling table, one a file.

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_interpolate(ResampleKernels& table);
void fill_unfold(ResampleKernels& table);

}  // namespace REEL_TARGET
}  // namespace reel::detail
