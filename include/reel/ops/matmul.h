#pragma once

#include <reel/tensor.h>

/// \file
/// Matrix products. Operands are combined in a common dtype. f32 and f64 are multiplied as such, bf16 and f16 with f32
/// sums and one rounding, integers with wrap-around; for bool, sums are or and products and. All take tensors, not
/// numbers.

namespace reel {

/// Matrix product, as NumPy's `@`: (…, M, K) and (…, K, N) → (…, M, N). Leading axes broadcast; a vector on the left is
/// a row, on the right a column, and its axis is dropped from the result. Transposed operands are read in place.
/// Throws: ShapeError where inner sizes differ or leading axes do not broadcast, or for a tensor of rank 0; DeviceError
/// for operands on different devices.
/// Source: NumPy's matmul.
Tensor matmul(const Arg& a, const Arg& b);

/// A matrix product per example: (B, M, K) and (B, K, N) → (B, M, N), without broadcasting.
/// Throws: ShapeError unless both have rank 3, one B and one K; DeviceError for operands on different devices.
/// Source: PyTorch's bmm.
Tensor bmm(const Arg& a, const Arg& b);

/// Options of `addmm`.
struct AddmmOptions {
  double beta = 1;   ///< the factor of c; default 1
  double alpha = 1;  ///< the factor of the product; default 1
};

/// beta · c + alpha · a b, for a: (M, K), b: (K, N) and c that broadcasts to (M, N). With beta = 0, c is left out: its
/// NaNs have no effect, and no gradient flows to it. In bf16 and f16 the product is rounded, and so is the sum, which is
/// computed in f32.
/// Throws: ShapeError unless they fit; DTypeError for a fraction among integers, or for any factor but 1 among bools;
/// DeviceError for operands on different devices.
/// Source: PyTorch's addmm.
Tensor addmm(const Arg& c, const Arg& a, const Arg& b, AddmmOptions options = {});

/// Outer product y_ij = a_i b_j: (M, N) for the M elements of a and the N of b, in row-major order.
/// Throws: DeviceError for operands on different devices.
/// Source: NumPy's outer.
Tensor outer(const Arg& a, const Arg& b);

/// The sums of products over several axes: y[i, j] = Σ_k a[i, k] b[k, j], with the last `count` axes of a and the first
/// `count` of b as k; count 0 gives the products of all pairs, in the shape of a followed by that of b.
/// Throws: ShapeError unless the sizes of these axes agree, for fewer axes than `count`, and if the result would have
/// more than 8 axes; DeviceError for operands on different devices.
/// Source: NumPy's tensordot.
Tensor tensordot(const Arg& a, const Arg& b, int count = 2);
/// The sums of products over several axes, axes_a[n] of a with axes_b[n] of b; the result has the other axes of a, then
/// those of b.
/// Throws: ShapeError unless there are as many axes of a as of b, of the same sizes, if one does not exist or is named
/// twice, and if the result would have more than 8 axes; DeviceError for operands on different devices.
/// Source: NumPy's tensordot.
Tensor tensordot(const Arg& a, const Arg& b, const Shape& axes_a, const Shape& axes_b);

/// The Kronecker product y[i P + k, j Q + l] = a[i, j] b[k, l]: (M, N) and (P, Q) → (M P, N Q); the same for every other
/// rank up to 4, with axes of size 1 added in front of the operand that has fewer.
/// Throws: ShapeError for more than 4 axes; DeviceError for operands on different devices.
/// Source: NumPy's kron.
Tensor kron(const Arg& a, const Arg& b);

/// The cross product a × b of the vectors of three elements along an axis; the other axes broadcast.
/// Throws: ShapeError unless both have size 3 along the axis and broadcast, and if the axis does not exist; DTypeError
/// for bools; DeviceError for operands on different devices.
/// Source: PyTorch's linalg.cross.
Tensor cross(const Arg& a, const Arg& b, int axis = -1);

/// Dot product Σ_i a_i b_i of two vectors: rank 0.
/// Throws: ShapeError unless both have rank 1 and one size; DeviceError for operands on different devices.
/// Source: PyTorch's dot.
Tensor dot(const Arg& a, const Arg& b);

}  // namespace reel
