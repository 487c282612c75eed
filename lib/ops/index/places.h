#pragma once

#include <reel/tensor.h>

namespace reel::detail {

// Parts of a tensor that forward functions read and write: untracked views.

/// Elements start, start + step, … of an axis; `count` of them.
struct SliceAttributes {
  std::int64_t axis, start, count, step;
};
Tensor slice_view(const Tensor& x, const SliceAttributes& at, Location where);

/// A diagonal of the matrices in the last two axes, as vectors; empty if `diagonal` is outside the matrices.
Tensor diagonal_view(const Tensor& x, std::int64_t diagonal, Location where);

}  // namespace reel::detail
