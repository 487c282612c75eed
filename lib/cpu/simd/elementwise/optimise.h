#pragma once

#include "../../../core/target.h"
#include "../../../kernels/optimise.h"

namespace reel::detail::inline REEL_TARGET {

void fill_optimise(OptimiserKernels& kernels);

}  // namespace reel::detail::inline REEL_TARGET
