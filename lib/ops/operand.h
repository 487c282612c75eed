#pragma once

#include "../core/op_error.h"

namespace reel::detail {

constexpr bool is_half(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

/// The common dtype of two operands by PyTorch's lattice: plain numbers, and tensors of rank 0 beside others of a
/// higher rank, determine it only if they are of a higher kind (bool < integer < floating).
/// Throws: Error for an undefined tensor.
DType common_dtype(const char* op, const Arg& a, const Arg& b);

/// The dtype in which an operand enters arithmetic whose results have `dtype`: f32 if it is a plain number, or a tensor of
/// rank 0 that is no half, beside halves, so that only the result is rounded; else `dtype`.
DType arithmetic_dtype(const Arg& operand, DType dtype);

/// Returns true if results of one dtype may be written into a tensor of another: not into one of a lower kind.
bool is_castable(DType from, DType to);

/// Throws: DTypeError for an integer that the dtype cannot hold.
void check_fits(const char* op, const Arg& number, DType dtype);

/// An operand as a tensor of a given dtype: the caller's own if it has the dtype, else one made for the call.
class Operand : Immovable {
 public:
  /// `beside`: the other operand; a plain number is put on its device.
  /// Throws: DTypeError for an integer that the dtype cannot hold.
  Operand(const char* op, const Arg& arg, DType dtype, const Arg& beside);
  const Tensor& operator*() const { return *tensor_; }
  const Tensor* operator->() const { return tensor_; }

 private:
  Tensor made_;
  const Tensor* tensor_;
};

}  // namespace reel::detail
