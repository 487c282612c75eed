#pragma once

#include <cstdint>

#include "../../core/modules/module_table.h"
#include "../../kernels/linear_algebra.h"

namespace reel::detail {

/// The matrices of a batch from index `begin` to before `end`.
struct MatrixRange {
  std::int64_t begin, end;
};

/// The result of a kernel that gets no memory.
inline constexpr std::int64_t no_memory = -2;

/// The kernels of libreel_decompositions.so: those of `LinearAlgebraKernels`, for a range of matrices that are not empty.
/// They return the index of the first matrix that fails, −1 if none does, or `no_memory`.
struct DecompositionsTable {
  static constexpr ModuleName module = {"reel_decompositions", "decompositions and solutions of matrices", "libstdc++6",
                                        2};

  std::int64_t (*solve)(MatrixRange range, const View& out, const View& a, const View& b) noexcept;
  std::int64_t (*triangular_solve)(MatrixRange range, const View& out, const View& a, const View& b,
                                   TriangleAttributes triangle) noexcept;
  std::int64_t (*invert)(MatrixRange range, const View& out, const View& a) noexcept;
  std::int64_t (*determinant)(MatrixRange range, const View& out, const View& a) noexcept;
  std::int64_t (*log_determinant)(MatrixRange range, const View& sign, const View& logarithm, const View& a) noexcept;
  std::int64_t (*cholesky)(MatrixRange range, const View& out, const View& a) noexcept;
  std::int64_t (*lu)(MatrixRange range, const View& factors, const View& order, const View& a) noexcept;
  std::int64_t (*qr)(MatrixRange range, const View& q, const View& r, const View& a) noexcept;
  std::int64_t (*svd)(MatrixRange range, const View& u, const View& s, const View& vh, const View& a) noexcept;
  std::int64_t (*eigh)(MatrixRange range, const View& values, const View& vectors, const View& a) noexcept;
};

}  // namespace reel::detail
