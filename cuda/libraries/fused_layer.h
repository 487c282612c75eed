#pragma once

#include "../../lib/core/target.h"
#include "../../lib/kernels/recurrent.h"

namespace reel::detail::inline REEL_TARGET {

// The slots of RecurrentKernels, by a library of the device's vendor.
bool fused_layer_sizes(const FusedLayer& form, FusedLayerSizes& sizes);
void run_fused_layer(const FusedLayerForward& layer);
void run_fused_layer_gradient(const FusedLayerBackward& layer);

}  // namespace reel::detail::inline REEL_TARGET
