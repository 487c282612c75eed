#pragma once

#include <reel/ops/sort.h>

#include "../../dispatch/invoke.h"
#include "../../record/gradient.h"
#include "attributes.h"

// Common parts of ops that give elements and their indices along the axis of OrderAttributes.

namespace reel::detail {

/// The outputs of such an op. The indices are the first, because only the first outputs can be saved.
inline constexpr int indices_output = 0, values_output = 1;

/// The gradient of such an op, which saves the indices: dx = zeros, to which d is added at the indices.
void accumulate_at_indices(Gradient& g);

/// Invokes such an op, whose outputs have the given shape.
ValuesAndIndices invoke_ordered(const OpInfo& op, const Tensor& x, const Shape& shape, OrderAttributes attributes,
                                Location where);

}  // namespace reel::detail
