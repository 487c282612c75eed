#pragma once

#include <reel/ops/elementwise.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>

#include "../core/op_error.h"

// Conversions of operands that the library only reads: they return the operand itself if it has the wanted form
// already, which saves a copy and an entry on the tape. A public function must never return its operand, so it calls
// the public function instead.

namespace reel::detail {

/// x with this dtype. Throws: as `to`.
inline Tensor to_if_needed(const Arg& x, DType dtype) {
  const Tensor& tensor = tensor_of("to", x);
  return tensor.dtype() == dtype ? tensor : to(x, dtype);
}

/// x, with halves converted to f32: for results that several ops compute, so that they are rounded once.
inline Tensor widened(const Tensor& x) { return size_of(x.dtype()) == 2 ? to(x, DType::f32) : x; }

/// x on this device. Throws: as `to`.
inline Tensor to_if_needed(const Arg& x, Device device) {
  const Tensor& tensor = tensor_of("to", x);
  return tensor.device() == device ? tensor : to(x, device);
}

/// The only element of x, for a check that ends in an error or in nothing: it is not reported as read by the program.
template <class T>
T value_to_check(const Tensor& x) {
  Tensor here = to_if_needed(to_if_needed(x, dtype_of<T>()), cpu);
  wait_for(here, {});
  return *static_cast<const T*>(here.body().data);
}

/// x in row-major order. Throws: as `contiguous`.
inline Tensor contiguous_if_needed(const Arg& x) {
  const Tensor& tensor = tensor_of("contiguous", x);
  return tensor.is_contiguous() ? tensor : copy(x);
}

/// x broadcast to this shape. Throws: as `expand`.
inline Tensor expand_if_needed(const Arg& x, const Shape& shape) {
  const Tensor& tensor = tensor_of("expand", x);
  return tensor.shape() == shape ? tensor : expand(x, shape);
}

/// x summed to this shape. Throws: as `sum_to`.
inline Tensor sum_to_if_needed(const Arg& x, const Shape& shape) {
  const Tensor& tensor = tensor_of("sum_to", x);
  return tensor.shape() == shape ? tensor : sum_to(x, shape);
}

}  // namespace reel::detail
