#pragma once

#include "../../core/op.h"

// The ops by which calls of several examples become one: their operands are joined, and the results divided again.

namespace reel::detail {

/// The inputs, concatenated along axis 0 of the output; the attributes are `RowDivision`.
extern const OpInfo batch_op;
/// Views of the input's rows, divided by `RowDivision`.
extern const OpInfo unbatch_op;

/// Called before a tensor is overwritten: if it shares elements with other examples, moves it and the tensors that are views
/// of its own ones to other elements. Throws: MemoryError; Error if such tensors are another thread's.
void leave_group(const char* op, const Tensor& x, Location where);

}  // namespace reel::detail
