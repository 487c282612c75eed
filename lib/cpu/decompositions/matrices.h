#pragma once

#include <cstdint>
#include <new>

#include <Eigen/Core>

#include "decompositions_table.h"

// Eigen's decompositions work on column-major copies.

namespace reel::detail {

template <class T>
using ColumnMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
template <class T>
using RowMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using ColumnVector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

/// Fills in the kernels that are not defined in the file of the table: cholesky, qr, svd and eigh.
template <class T>
void fill_decompositions(DecompositionKernels<T>& kernels);

/// A matrix of a batch.
template <class T>
Eigen::Map<RowMatrix<T>> matrix(const Matrices<T>& all, std::int64_t i) {
  return {all.first + i * all.rows * all.columns, static_cast<Eigen::Index>(all.rows),
          static_cast<Eigen::Index>(all.columns)};
}

/// A vector of a batch.
template <class T>
Eigen::Map<ColumnVector<T>> vector(T* all, std::int64_t size, std::int64_t i) {
  return {all + i * size, static_cast<Eigen::Index>(size)};
}

/// Calls f(index) for the matrices of a range until it returns false. Returns what kernels do.
template <class F>
std::int64_t first_fault(MatrixRange range, F f) noexcept {
  try {
    for (std::int64_t i = range.begin; i < range.end; ++i)
      if (!f(i)) return i;
    return -1;
  } catch (const std::bad_alloc&) {
    return no_memory;
  }
}

}  // namespace reel::detail
