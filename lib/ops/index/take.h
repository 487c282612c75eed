#pragma once

#include <reel/ops/index.h>

#include "../../core/op.h"
#include "../../record/gradient.h"

// Functions shared by the ops that take rows.

namespace reel::detail {

void take_forward(Call& call);
/// Indices into rows of one table are joined.
Joining joining_of_take(const Call& call);
/// Returns true if all indices are within the axis.
bool take_accepts(const Call& call);
/// The gradient of x with every element in memory.
void take_gradient(Gradient& g);

/// An op y[…, j, …] = x[…, indices[j], …], whose attributes are AxisAttributes.
constexpr OpInfo taking(const char* name, void (*gradient)(Gradient& g) = take_gradient, bool internal = false) {
  return {
      .name = name,
      .forward = take_forward,
      .gradient = gradient,
      .saves_input_for = {0, inputs({0})},
      .joining = joining_of_take,
      .shares_weight = true,
      .accepts_elements = take_accepts,
      .internal = internal,
  };
}

/// Throws: DTypeError for indices other than i32 or i64; ShapeError for more than 8 axes; IndexError; DeviceError.
Tensor take_rows(const OpInfo& op, const Tensor& x, const Tensor& indices, int axis, Location where);

}  // namespace reel::detail
