#pragma once

#include "../../../lib/core/target.h"
#include "../../../lib/kernels/activation.h"

namespace reel::detail::inline REEL_TARGET {

/// Fills the slots of one part of the lists.
template <int part>
void fill_elementwise_part(KernelTable& table, ActivationKernels& activation);
/// Fills the slots of the activation table that are defined in softmax.cu.
void fill_masked_softmax(ActivationKernels& table);

}  // namespace reel::detail::inline REEL_TARGET
