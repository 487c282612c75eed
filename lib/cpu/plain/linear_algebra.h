#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <type_traits>

#include <Eigen/Core>

#include "../../core/threads/parallel.h"
#include "../../kernels/linear_algebra.h"

// Only this header includes Eigen. Its decompositions work on column-major copies.

namespace reel::detail {

template <class T>
using ColumnMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
template <class T>
using RowMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using ColumnVector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

// The kernels that are not defined in the file of their table.
std::int64_t factor_cholesky(const View& out, const View& a);
void factor_qr(const View& q, const View& r, const View& a);
std::int64_t factor_svd(const View& u, const View& s, const View& vh, const View& a);
std::int64_t factor_eigh(const View& values, const View& vectors, const View& a);

/// The matrices of a batch, stored contiguously.
template <class T>
struct Matrices {
  T* first;
  std::int64_t rows, columns;

  explicit Matrices(const View& x) : first(x.as<T>()), rows(x.dims[x.rank - 2]), columns(x.dims[x.rank - 1]) {}
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

/// The number of matrices in a batch.
inline std::int64_t batch_of(const View& a) {
  std::int64_t count = 1;
  for (int axis = 0; axis < a.rank - 2; ++axis) count *= a.dims[axis];
  return count;
}

/// Calls f(index) for every matrix of a batch. Returns the first index for which f returned false, −1 if there is none.
template <class F>
std::int64_t first_fault(const View& a, F f) {
  std::int64_t count = batch_of(a), rows = a.dims[a.rank - 2], columns = a.dims[a.rank - 1];
  std::int64_t work = std::max<std::int64_t>(1, rows * columns * std::min(rows, columns));
  std::atomic<std::int64_t> fault{count};
  parallel_for(count, std::max<std::int64_t>(1, parallel_grain / work), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (f(i)) continue;
      std::int64_t before = fault.load();
      while (i < before && !fault.compare_exchange_weak(before, i)) {
      }
    }
  });
  return fault == count ? -1 : fault.load();
}

/// Calls f with the element type.
template <class F>
auto with_element(DType dtype, F f) {
  return dtype == DType::f64 ? f(std::type_identity<double>()) : f(std::type_identity<float>());
}

}  // namespace reel::detail
