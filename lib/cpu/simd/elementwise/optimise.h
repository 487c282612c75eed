#pragma once

#include "../../../core/target.h"
#include "../../../kernels/optimise.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_optimise(OptimiserKernels& kernels);

}  // namespace REEL_TARGET
}  // namespace reel::detail
