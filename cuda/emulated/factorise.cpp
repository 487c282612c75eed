#include "../libraries/factorise.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <Eigen/QR>

#include "../../lib/kernels/kernel_table.h"
#include "device_access.h"
#include "stream.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
template <class T>
using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

template <class T>
Eigen::Map<Matrix<T>> matrix(T* all, std::int64_t i, std::int64_t rows, std::int64_t columns) {
  return {all + i * rows * columns, rows, columns};
}
template <class T>
Eigen::Map<const Matrix<T>> matrix(const T* all, std::int64_t i, std::int64_t rows, std::int64_t columns) {
  return {all + i * rows * columns, rows, columns};
}

}  // namespace

template <class T>
void factor_lu(T* a, std::int64_t rows, std::int64_t n, std::int64_t count, int* pivots) {
  give_to_stream(current_stream(), [=] {
    DeviceAccess access;
    for (std::int64_t i = 0; i < count; ++i) {
      auto left = matrix(a, i, rows, n);
      for (std::int64_t k = 0, size = std::min(rows, n); k < size; ++k) {
        std::int64_t below = rows - k - 1, largest = 0;
        left.col(k).tail(below + 1).cwiseAbs().maxCoeff(&largest);
        left.row(k).swap(left.row(k + largest));
        pivots[i * size + k] = static_cast<int>(k + largest) + 1;
        if (left(k, k) != 0) left.col(k).tail(below) /= left(k, k);
        left.bottomRightCorner(below, n - k - 1) -= left.col(k).tail(below) * left.row(k).tail(n - k - 1);
      }
    }
  });
}

template <class T>
void solve_factored(const T* factors, const int* pivots, T* right, std::int64_t n, std::int64_t columns,
                    std::int64_t count) {
  give_to_stream(current_stream(), [=] {
    DeviceAccess access;
    for (std::int64_t i = 0; i < count; ++i) {
      auto x = matrix(right, i, n, columns);
      for (std::int64_t row = 0; row < n; ++row) x.row(row).swap(x.row(pivots[i * n + row] - 1));
      auto lu = matrix(factors, i, n, n);
      lu.template triangularView<Eigen::UnitLower>().solveInPlace(x);
      lu.template triangularView<Eigen::Upper>().solveInPlace(x);
    }
  });
}

template <class T>
void solve_triangle(const T* a, T* right, std::int64_t n, std::int64_t columns, std::int64_t count,
                    TriangleAttributes triangle) {
  give_to_stream(current_stream(), [=] {
    DeviceAccess access;
    bool transposed = triangle.transposed != 0, upper = (triangle.upper != 0) != transposed;
    for (std::int64_t i = 0; i < count; ++i) {
      // A row-major matrix is the transpose of a column-major one.
      Matrix<T> factor = matrix(a, i, n, n), x = matrix(right, i, columns, n).transpose();
      if (!transposed) factor.transposeInPlace();
      auto solve = [&](const auto& view) { view.solveInPlace(x); };
      bool unit = triangle.unit_diagonal != 0;
      if (upper)
        unit ? solve(factor.template triangularView<Eigen::UnitUpper>())
             : solve(factor.template triangularView<Eigen::Upper>());
      else
        unit ? solve(factor.template triangularView<Eigen::UnitLower>())
             : solve(factor.template triangularView<Eigen::Lower>());
      matrix(right, i, columns, n) = x.transpose();
    }
  });
}

template <class T>
void factor_cholesky(T* a, std::int64_t n, std::int64_t count, int* faults) {
  give_to_stream(current_stream(), [=] {
    DeviceAccess access;
    for (std::int64_t i = 0; i < count; ++i) {
      Eigen::LLT<Matrix<T>, Eigen::Upper> factors{Matrix<T>(matrix(a, i, n, n))};
      matrix(a, i, n, n).template triangularView<Eigen::Upper>() = Matrix<T>(factors.matrixU());
      faults[i] = factors.info() != Eigen::Success;
    }
  });
}

template <class T>
void factor_qr(T* a, T* scales, std::int64_t rows, std::int64_t n, std::int64_t count) {
  give_to_stream(current_stream(), [=] {
    DeviceAccess access;
    for (std::int64_t i = 0; i < count; ++i) {
      Eigen::HouseholderQR<Matrix<T>> factors{Matrix<T>(matrix(a, i, rows, n))};
      matrix(a, i, rows, n) = factors.matrixQR();
      Eigen::Map<Vector<T>>(scales + i * n, n) = factors.hCoeffs();
    }
  });
}

template <class T>
void unfold_q(T* a, const T* scales, std::int64_t rows, std::int64_t n, std::int64_t count) {
  give_to_stream(current_stream(), [=] {
    DeviceAccess access;
    for (std::int64_t i = 0; i < count; ++i) {
      Matrix<T> reflections = matrix(a, i, rows, n), q = Matrix<T>::Identity(rows, n);
      Vector<T> factors = Eigen::Map<const Vector<T>>(scales + i * n, n);
      q.applyOnTheLeft(Eigen::HouseholderSequence<Matrix<T>, Vector<T>>(reflections, factors));
      matrix(a, i, rows, n) = q;
    }
  });
}

// Singular vectors and eigenvectors are computed by the CPU's kernels: decompositions take longest to compile, and the
// tests compare them with references of their own.

namespace {

// One contiguous matrix or vector.
struct Dense {
  std::int64_t dims[2], strides[2];
  double* data;
  int rank;

  Dense(double* vector, std::int64_t size) : dims{size, 0}, strides{1, 0}, data(vector), rank(1) {}
  Dense(double* matrix, std::int64_t rows, std::int64_t columns)
      : dims{rows, columns}, strides{columns, 1}, data(matrix), rank(2) {}
  View view() const {
    std::int64_t count = rank == 1 ? dims[0] : dims[0] * dims[1];
    return {.data = data,
            .dims = dims,
            .strides = strides,
            .numel = count,
            .rank = rank,
            .dtype = DType::f64,
            .contiguous = true};
  }
};

const LinearAlgebraKernels& cpu_kernels() { return *kernels(cpu).linear_algebra; }

}  // namespace

void factor_svd(double* a, double* u, double* s, double* vt, std::int64_t rows, std::int64_t n, std::int64_t count,
                int* faults) {
  give_to_stream(current_stream(), [=] {
    DeviceAccess access;
    for (std::int64_t i = 0; i < count; ++i) {
      // The CPU's matrices are row-major: it decomposes aᵀ = v s uᵀ.
      Dense transposed(a + i * rows * n, n, rows), right(vt + i * n * n, n, n), values(s + i * n, n),
          left(u + i * rows * n, n, rows);
      faults[i] = cpu_kernels().svd(right.view(), values.view(), left.view(), transposed.view()) != -1;
    }
  });
}

void factor_eigh(double* a, double* values, std::int64_t n, std::int64_t count, int* faults) {
  give_to_stream(current_stream(), [=] {
    DeviceAccess access;
    for (std::int64_t i = 0; i < count; ++i) {
      auto vectors = matrix(a, i, n, n);
      // In row-major order the lower triangle would be the upper one.
      Matrix<double> lower = vectors.transpose();
      Dense symmetric(lower.data(), n, n), columns(a + i * n * n, n, n), rising(values + i * n, n);
      faults[i] = cpu_kernels().eigh(rising.view(), columns.view(), symmetric.view()) != -1;
      vectors.transposeInPlace();
    }
  });
}

template void factor_lu(float*, std::int64_t, std::int64_t, std::int64_t, int*);
template void factor_lu(double*, std::int64_t, std::int64_t, std::int64_t, int*);
template void solve_factored(const float*, const int*, float*, std::int64_t, std::int64_t, std::int64_t);
template void solve_factored(const double*, const int*, double*, std::int64_t, std::int64_t, std::int64_t);
template void solve_triangle(const float*, float*, std::int64_t, std::int64_t, std::int64_t, TriangleAttributes);
template void solve_triangle(const double*, double*, std::int64_t, std::int64_t, std::int64_t, TriangleAttributes);
template void factor_cholesky(float*, std::int64_t, std::int64_t, int*);
template void factor_cholesky(double*, std::int64_t, std::int64_t, int*);
template void factor_qr(float*, float*, std::int64_t, std::int64_t, std::int64_t);
template void factor_qr(double*, double*, std::int64_t, std::int64_t, std::int64_t);
template void unfold_q(float*, const float*, std::int64_t, std::int64_t, std::int64_t);
template void unfold_q(double*, const double*, std::int64_t, std::int64_t, std::int64_t);

}  // namespace reel::detail::inline REEL_TARGET
