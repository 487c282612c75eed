#pragma once

#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../kernels/linear_algebra.h"

namespace reel::detail {

/// The kernels of the device that a call runs on. Throws: Error, for the CPU without libreel_decompositions.so.
inline const LinearAlgebraKernels& linear_algebra_kernels(const Call& call) {
  const LinearAlgebraKernels& table = *kernels(call.output().device).linear_algebra;
  if (table.load) table.load(call.op.name, call.where);
  return table;
}

/// The tensor of an operand that holds matrices. Throws: DTypeError unless f32 or f64; ShapeError below rank 2.
const Tensor& matrices_of(const char* op, const Arg& a);
/// The tensor of an operand that holds square matrices. Throws: DTypeError unless f32 or f64; ShapeError unless square.
const Tensor& square_matrices_of(const char* op, const Arg& a);

/// Throws an Error about one matrix of input 0, whose index is counted along the batch; does nothing for −1.
void check_matrix(const Call& call, std::int64_t number, const char* fault);

/// For `OpInfo::accepts_elements` of an op that finds out only by running whether it refuses a matrix.
inline bool refuses_some(const Call&) { return false; }

/// The shape of the leading axes followed by `sizes`.
Shape with_batch(const Tensor& a, std::initializer_list<std::int64_t> sizes);

}  // namespace reel::detail
