#pragma once

#include "../../core/op.h"

// The ops by which calls of several examples become one: their operands are joined, and the results divided again.

namespace reel::detail {

/// The inputs, concatenated along axis 0 of the output; the attributes are `RowDivision`.
extern const OpInfo batch_op;
/// Views of the input's rows, divided by `RowDivision`.
extern const OpInfo unbatch_op;

}  // namespace reel::detail
