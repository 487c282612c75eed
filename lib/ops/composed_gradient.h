#pragma once

#include <functional>
#include <span>
#include <vector>

#include "../record/gradient.h"

namespace reel::detail {

/// Computes the gradients of an op that has saved all its inputs by differentiating composed(inputs), which computes the
/// outputs from them with differentiable ops: used when an outer tape records. Outputs without a gradient may be
/// undefined. Defined in autograd, because it opens a tape.
void accumulate_composed(Gradient& g, const std::function<std::vector<Tensor>(std::span<const Tensor>)>& composed);

}  // namespace reel::detail
