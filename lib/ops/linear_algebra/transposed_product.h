#pragma once

#include <reel/tensor.h>

#include "../../record/gradient.h"

namespace reel::detail {

/// a bᵀ for the gradient of a product: without a tensor for bᵀ, unless it is differentiated itself.
Tensor times_transposed(const Gradient& gradient, const Tensor& a, const Tensor& b);

}  // namespace reel::detail
