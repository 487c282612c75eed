#pragma once

#include "../lib/core/kernels/activation.h"
#include "../lib/core/target.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// The part of the activations' table that softmax.cu fills.
void fill_masked_softmax(ActivationKernels& table);

}  // namespace REEL_TARGET
}  // namespace reel::detail
