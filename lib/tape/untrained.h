#pragma once

#include <span>

#include <reel/tensor.h>

namespace reel::detail {

/// Warns, once for each, of parameters whose gradients nobody uses: no optimiser holds them, nothing overwrote them between
/// two backwards, but one that an optimiser holds was overwritten, as by a step. `parameters`: those that one backward
/// gave gradients to.
void report_untrained(std::span<const Tensor> parameters);

}  // namespace reel::detail
