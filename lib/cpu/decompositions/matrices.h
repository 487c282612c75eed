#pragma once

#include <cstdint>
#include <new>
#include <type_traits>

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

// The kernels that are not defined in the file of the table.
std::int64_t factor_cholesky(MatrixRange range, const View& out, const View& a) noexcept;
std::int64_t factor_qr(MatrixRange range, const View& q, const View& r, const View& a) noexcept;
std::int64_t factor_svd(MatrixRange range, const View& u, const View& s, const View& vh, const View& a) noexcept;
std::int64_t factor_eigh(MatrixRange range, const View& values, const View& vectors, const View& a) noexcept;

/// The matrices of a batch, stored contiguously; none if the view has no data.
template <class T>
struct Matrices {
  T* first;
  std::int64_t rows = 0, columns = 0;

  explicit Matrices(const View& x) : first(x.as<T>()) {
    if (!first) return;
    rows = x.dims[x.rank - 2];
    columns = x.dims[x.rank - 1];
  }
  Eigen::Map<RowMatrix<T>> operator[](std::int64_t i) const {
    return {first + i * rows * columns, static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(columns)};
  }
};

/// The vectors of a batch.
template <class T>
struct Vectors {
  T* first;
  std::int64_t size;

  explicit Vectors(const View& x) : first(x.as<T>()), size(x.dims[x.rank - 1]) {}
  Eigen::Map<ColumnVector<T>> operator[](std::int64_t i) const {
    return {first + i * size, static_cast<Eigen::Index>(size)};
  }
};

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

/// Calls f with the element type.
template <class F>
std::int64_t with_element(DType dtype, F f) noexcept {
  return dtype == DType::f64 ? f(std::type_identity<double>()) : f(std::type_identity<float>());
}

}  // namespace reel::detail
