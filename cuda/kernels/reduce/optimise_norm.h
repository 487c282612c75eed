#pragma once

#include "../../../lib/core/target.h"
#include "../../../lib/kernels/optimise.h"

namespace reel::detail::inline REEL_TARGET {

/// See OptimiserKernels::norm.
void norm_of_tensors(double* norm, std::span<const TensorSlice> tensors);

}  // namespace reel::detail::inline REEL_TARGET
