#pragma once

#include "../../../kernels/activation.h"

// The part of the activation table that another file fills. This header is compiled once per instruction set.

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_masked_softmax(ActivationKernels& table);

}  // namespace REEL_TARGET
}  // namespace reel::detail
