#pragma once

#include <reel/ops/elementwise.h>
#include <reel/ops/reduce.h>

#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"

// Common parts of the reductions.

namespace reel::detail {

template <Reduction op>
void reduce_forward(Call& call) {
  kernels(call.output().device).reduce[static_cast<int>(op)](call.output(), call.input(0));
}

/// A set of axes, as bits.
using AxisSet = unsigned;

/// The axes as a set. Throws: ShapeError if an axis does not exist or is named twice.
AxisSet axis_set(const char* op, const Tensor& x, const Axes& axes, Location where);

/// x's shape with size 1 on the reduced axes.
Shape kept_shape(const Tensor& x, AxisSet axes);
/// The number of elements that are reduced to one result.
double count_along(const Tensor& x, AxisSet axes);

/// Removes the reduced axes, which have size 1, from a result.
Tensor without_axes(Tensor result, AxisSet axes, bool keepdims, Location where);

/// Invokes a reduction, whose kernel needs the reduced axes with size 1.
Tensor reduce_to_kept(const OpInfo& op, const Tensor& x, AxisSet axes, DType dtype, bool keepdims, Location where,
                      std::span<const std::byte> attributes = {});

/// Throws: ShapeError if a result would be reduced from no elements; `what` names that result, as in "largest element".
void check_not_of_nothing(const char* op, const char* what, const Tensor& x, AxisSet axes, Location where);

/// The indices of one or two elements of each row of (…, N), N > 0, by their ranks in ascending order: (…, 1) or (…, 2). Equal
/// elements are in the order of their indices. Without a gradient. A rank of −1 − r stands for r where NaN are the largest
/// elements; elsewhere a row that has NaN gives the index of the first.
Tensor places_of_ranks(const Tensor& rows, std::span<const std::int64_t> ranks, Location where);

/// The axes along which two shapes of one rank differ.
AxisSet axes_between(const Shape& from, const Shape& kept);
/// x with the given axes, at least one, joined into one at the end.
Tensor join_axes(const Tensor& x, AxisSet axes);
/// The inverse of `join_axes`: splits the last axis into `axes` of a tensor of the given shape.
Tensor split_axes(const Tensor& joined, const Shape& shape, AxisSet axes);

}  // namespace reel::detail
