#pragma once

#include "../core/invoke.h"
#include "../core/op_error.h"

namespace reel::detail {

/// The tensor of an operand that holds matrices. Throws: DTypeError unless f32 or f64; ShapeError below rank 2.
const Tensor& matrices_of(const char* op, const Arg& a);
/// The same for square ones.
const Tensor& square_matrices_of(const char* op, const Arg& a);

/// Throws an Error about one matrix of input 0, counted along the batch; not if `number` is −1.
void check_matrix(const Call& call, std::int64_t number, const char* fault);

/// The leading axes, and more behind them.
Shape with_batch(const Tensor& a, std::initializer_list<std::int64_t> sizes);

}  // namespace reel::detail
