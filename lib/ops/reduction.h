#pragma once

#include <reel/ops/elementwise.h>
#include <reel/ops/reduce.h>

#include "../core/invoke.h"
#include "../core/kernel_table.h"

// What the families of reductions share.

namespace reel::detail {

template <Reduction op>
void reduce_forward(Call& call) {
  kernels(call.output().device).reduce[static_cast<int>(op)](call.output(), call.input(0));
}

/// A set of axes, as bits.
using AxisSet = unsigned;

/// All axes where none are given. Throws: ShapeError if an axis does not exist or is named twice.
AxisSet axis_set(const char* op, const Tensor& x, const Shape* axes, Location where);

/// x's shape with size 1 on the axes.
Shape kept_shape(const Tensor& x, AxisSet axes);
/// How many elements make up one result.
double count_along(const Tensor& x, AxisSet axes);

/// Takes the reduced axes out of a result that still has them.
Tensor without_axes(Tensor result, AxisSet axes, bool keepdims, Location where);

/// Invokes a reduction, whose kernel wants the reduced axes with size 1.
Tensor reduce_to_kept(const OpInfo& op, const Tensor& x, AxisSet axes, DType dtype, bool keepdims, Location where,
                      std::span<const std::byte> attributes = {});

/// Throws: ShapeError if there are results of no elements; `what` is what nothing has not, as in "largest element".
void check_not_of_nothing(const char* op, const char* what, const Tensor& x, AxisSet axes, Location where);

/// The axes along which two shapes of one rank differ.
AxisSet axes_between(const Shape& from, const Shape& kept);
/// x with the axes, of which there is at least one, joined into one at the end.
Tensor join_axes(const Tensor& x, AxisSet axes);
/// The way back to a shape.
Tensor split_axes(const Tensor& joined, const Shape& shape, AxisSet axes);

/// In f32 if it is half as wide: for what takes several steps.
inline Tensor widened(const Tensor& x) { return size_of(x.dtype()) == 2 ? to(x, DType::f32) : x; }

}  // namespace reel::detail
