#pragma once

#include "../../lib/core/target.h"
#include "../../lib/kernels/recurrent.h"

namespace reel::detail::inline REEL_TARGET {

// The slots of RecurrentKernels, by a library of the device's vendor.
bool whole_layer_sizes(const WholeLayer& form, WholeLayerSizes& sizes);
void run_whole_layer(const WholeLayerForward& layer);
void run_whole_layer_gradient(const WholeLayerBackward& layer);

}  // namespace reel::detail::inline REEL_TARGET
