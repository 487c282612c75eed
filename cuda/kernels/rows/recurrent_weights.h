#pragma once

#include "../../../lib/core/target.h"
#include "../../../lib/kernels/recurrent.h"

namespace reel::detail::inline REEL_TARGET {

/// The slot RecurrentKernels::pack_weights.
void pack_layer_weights(const LayerWeights& weights);
/// Writes the parts of packed weights, or of their gradient, to W_x, W_h and bias.
void unpack_layer_weights(const LayerWeights& weights);

}  // namespace reel::detail::inline REEL_TARGET
