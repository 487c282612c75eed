#pragma once

#include <cstdint>

#include <reel/detail/view.h>
#include <reel/location.h>

namespace reel::detail {

struct TriangleAttributes {
  std::int64_t upper, transposed, unit_diagonal;
};

/// Kernels on matrices in the last two axes: all f32 or f64, contiguous, with equal leading axes. Kernels that can fail
/// return the index of the first matrix that does, counted along the batch, else −1.
struct LinearAlgebraKernels {
  /// Loads what the kernels need, in the name of `op`; null if they need nothing. Throws: Error.
  void (*load)(const char* op, Location where);
  std::int64_t (*solve)(const View& out, const View& a, const View& b);
  std::int64_t (*triangular_solve)(const View& out, const View& a, const View& b, TriangleAttributes attributes);
  std::int64_t (*invert)(const View& out, const View& a);
  void (*determinant)(const View& out, const View& a);
  void (*log_determinant)(const View& sign, const View& logarithm, const View& a);
  std::int64_t (*cholesky)(const View& out, const View& a);
  /// The rows of a (…, M, N) in the order in which elimination takes them, `order` (…, M) of i64, and their factors: u in
  /// the upper triangle, and l below, without its diagonal of ones.
  void (*lu)(const View& factors, const View& order, const View& a);
  /// A has at least as many rows as columns.
  void (*qr)(const View& q, const View& r, const View& a);
  /// Vectors are not wanted if their views have no data, here and in `eigh`.
  std::int64_t (*svd)(const View& u, const View& s, const View& vh, const View& a);
  std::int64_t (*eigh)(const View& values, const View& vectors, const View& a);
  /// out = c + a b of single matrices of any strides, but `out` is contiguous; null if no fused kernel exists.
  void (*addmm)(const View& out, const View& c, const View& a, const View& b);
};

}  // namespace reel::detail
