#pragma once

#include <reel/shape.h>
#include <reel/tensor.h>

namespace reel::detail {

/// Combines values for rows of a table, in any order, into a row gradient: values of one row are summed, in f32 for
/// halves. `indices` (n) are i32 or i64 in [−count, count), values (n, …).
RowGradient combined(const Tensor& indices, const Tensor& values, std::int64_t count);

/// The sum of two row gradients.
RowGradient combined(const RowGradient& a, const RowGradient& b, std::int64_t count);

/// Returns `total` with the rows added, as a new tensor.
Tensor with_rows(const Tensor& total, const Tensor& indices, const Tensor& values);

/// The dense form of a row gradient: zeros in the rows that it lacks.
Tensor dense(const RowGradient& gradient, const Shape& shape);

}  // namespace reel::detail
