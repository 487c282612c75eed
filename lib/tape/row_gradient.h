#pragma once

#include <reel/shape.h>
#include <reel/tensor.h>

namespace reel::detail {

/// Values for rows of a table, in any order: those for one row are added up, in f32 for halves. `indices` (n) are i32 or
/// i64 in [−count, count), values (n, …).
RowGradient combined(const Tensor& indices, const Tensor& values, std::int64_t count);

/// The sum of two.
RowGradient combined(const RowGradient& a, const RowGradient& b, std::int64_t count);

/// `total` with the rows added, as a new tensor.
Tensor with_rows(const Tensor& total, const Tensor& indices, const Tensor& values);

/// With zeros for the rows that are not there.
Tensor dense(const RowGradient& gradient, const Shape& shape);

}  // namespace reel::detail
