#pragma once

#include <span>

#include <reel/tensor.h>

namespace reel::detail {

/// Warns, once for each, of parameters whose gradients are unused: no optimiser holds them and nothing overwrote them
/// between two backward passes, while one that an optimiser holds was overwritten, as by a step. `parameters`: those to
/// which one backward pass gave gradients.
void report_untrained(std::span<const Tensor> parameters);

}  // namespace reel::detail
