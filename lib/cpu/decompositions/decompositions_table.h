#pragma once

#include <cstdint>

#include "../../core/modules/module_table.h"

namespace reel::detail {

/// The matrices of a batch, stored contiguously in row-major order.
template <class T>
struct Matrices {
  T* first;
  std::int64_t rows, columns;
};

/// The matrices of a batch from index `begin` to before `end`.
struct MatrixRange {
  std::int64_t begin, end;
};

/// What a triangular matrix is, and whether its transpose is to be solved with.
struct Triangle {
  bool is_upper, is_transposed, has_unit_diagonal;
};

/// The result of a kernel that gets no memory.
inline constexpr std::int64_t no_memory = -2;

/// Kernels on a range of matrices, none of them empty. They return the index of the first matrix that fails, −1 if none
/// does, or `no_memory`.
template <class T>
struct DecompositionKernels {
  std::int64_t (*solve)(Matrices<T> out, Matrices<T> a, Matrices<T> b, MatrixRange range) noexcept;
  std::int64_t (*triangular_solve)(Matrices<T> out, Matrices<T> a, Matrices<T> b, Triangle triangle,
                                   MatrixRange range) noexcept;
  std::int64_t (*invert)(Matrices<T> out, Matrices<T> a, MatrixRange range) noexcept;
  /// Numbers: one for each matrix.
  std::int64_t (*determinant)(T* out, Matrices<T> a, MatrixRange range) noexcept;
  std::int64_t (*log_determinant)(T* sign, T* logarithm, Matrices<T> a, MatrixRange range) noexcept;
  std::int64_t (*cholesky)(Matrices<T> out, Matrices<T> a, MatrixRange range) noexcept;
  std::int64_t (*qr)(Matrices<T> q, Matrices<T> r, Matrices<T> a, MatrixRange range) noexcept;
  /// s: min(rows, columns) of a for each matrix.
  std::int64_t (*svd)(Matrices<T> u, T* s, Matrices<T> vh, Matrices<T> a, MatrixRange range) noexcept;
  /// values: as many for each matrix as it has rows.
  std::int64_t (*eigh)(T* values, Matrices<T> vectors, Matrices<T> a, MatrixRange range) noexcept;
};

/// The functions of libreel_decompositions.so.
struct DecompositionsTable {
  static constexpr ModuleName module = {"reel_decompositions", "decompositions and solutions of matrices", "libstdc++6",
                                        1};

  DecompositionKernels<float> f32;
  DecompositionKernels<double> f64;
};

}  // namespace reel::detail
