#pragma once

#include <reel/ops/recurrent.h>

#include "../../core/op.h"
#include "../../kernels/recurrent.h"
#include "recurrent.h"

namespace reel::detail {

/// The weights of a layer in f32 or f64, as the kernels of a device that computes fused layers take them.
struct KernelWeights {
  const Tensor &W_x, &W_h, &bias;
};

/// The packed weights of a layer, rounded as the net rounds them: u8, on the weights' device. `given`: the weights from
/// which `weights` were made, or which they are. If these are parameters, they are packed once for each of their versions
/// by a thread, which keeps 64 layers of 256 MB in all at most, unless a graph is recorded: it packs the values that they
/// have at each replay.
Tensor packed_weights(NetAttributes net, const FusedLayerSizes& sizes, const KernelWeights& weights,
                      const RecurrentWeights& given, Location where);

/// The op of `packed_weights`: W_x, W_h, b → packed.
extern const OpInfo pack_weights_op;

}  // namespace reel::detail
