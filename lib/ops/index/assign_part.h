#pragma once

#include <reel/indexing.h>

#include <span>

#include "../../core/context.h"

namespace reel::detail {

/// A view of a part of x.
Indexed view_part(const Tensor& x, const AxisParts& parts, Location where);

/// Writes `value`, which broadcasts and shares no elements with it, to a part. Afterwards the base has the slot of the
/// result.
void assign_part(const Indexed& part, const Tensor& value, Location where);

/// Assigns the part, which is still a view of its base, a slot for its new values after the base has been overwritten.
void show_part(Context& context, const Indexed& part, Location where);

/// A mask or a tensor of indices among the indices of x(…), and the axis of the view where it begins.
struct AxisIndices {
  const Tensor* tensor;
  int axis;
};

/// The elements that masks and tensors of indices select of a view of x: a copy.
/// Throws: as `Tensor::operator()`.
Indexed select_elements(const Tensor& x, const AxisParts& parts, std::span<const AxisIndices> indices, Location where);

/// Writes y, a tensor or a number that broadcasts, to a part that is a view. Errors name `op`.
void assign_view(const char* op, const Indexed& view, const Arg& y);

/// Writes y, a tensor or a number that broadcasts, to the elements that masks and tensors of indices select.
void assign_elements(const char* op, const Indexed& part, const Arg& y);

}  // namespace reel::detail
