#pragma once

#include "../core/kernels/optimise.h"
#include "../core/target.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_optimise(OptimiserKernels& kernels);

}  // namespace REEL_TARGET
}  // namespace reel::detail
