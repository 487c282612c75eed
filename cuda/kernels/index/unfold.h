#pragma once

#include "../../../lib/core/target.h"
#include "../../../lib/kernels/resample.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// Fills the slots of `unfold` and `fold`.
void fill_unfold(ResampleKernels& table);

}  // namespace REEL_TARGET
}  // namespace reel::detail
