#include "../factorise.h"

#include <utility>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>

#include "device_access.h"
#include "stream.h"

namespace reel::detail {
inline namespace REEL_TARGET {
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
void factor_lu(T* a, std::int64_t n, std::int64_t count, int* pivots) {
  give_to_stream(current_stream(), [=] {
    DeviceAccess access;
    for (std::int64_t i = 0; i < count; ++i) {
      Eigen::PartialPivLU<Matrix<T>> factors{Matrix<T>(matrix(a, i, n, n))};
      matrix(a, i, n, n) = factors.matrixLU();
      // From where each row went to which rows changed places.
      Vector<int> order = factors.permutationP().indices();
      Vector<int> rows = Vector<int>::LinSpaced(n, 0, static_cast<int>(n) - 1);
      for (std::int64_t row = 0; row < n; ++row) {
        std::int64_t other = row;
        while (order[rows[other]] != row) ++other;
        std::swap(rows[row], rows[other]);
        pivots[i * n + row] = static_cast<int>(other) + 1;
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
      // By rows, a matrix is its transpose by columns.
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

void factor_svd(double* a, double* u, double* s, double* vt, std::int64_t rows, std::int64_t n, std::int64_t count,
                int* faults) {
  give_to_stream(current_stream(), [=] {
    DeviceAccess access;
    for (std::int64_t i = 0; i < count; ++i) {
      Eigen::BDCSVD<Matrix<double>> factors(matrix(a, i, rows, n), Eigen::ComputeThinU | Eigen::ComputeThinV);
      matrix(u, i, rows, n) = factors.matrixU();
      Eigen::Map<Vector<double>>(s + i * n, n) = factors.singularValues();
      matrix(vt, i, n, n) = factors.matrixV().transpose();
      faults[i] = factors.info() != Eigen::Success;
    }
  });
}

void factor_eigh(double* a, double* values, std::int64_t n, std::int64_t count, int* faults) {
  give_to_stream(current_stream(), [=] {
    DeviceAccess access;
    for (std::int64_t i = 0; i < count; ++i) {
      Eigen::SelfAdjointEigenSolver<Matrix<double>> factors(matrix(a, i, n, n));
      Eigen::Map<Vector<double>>(values + i * n, n) = factors.eigenvalues();
      matrix(a, i, n, n) = factors.eigenvectors();
      faults[i] = factors.info() != Eigen::Success;
    }
  });
}

template void factor_lu(float*, std::int64_t, std::int64_t, int*);
template void factor_lu(double*, std::int64_t, std::int64_t, int*);
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

}  // namespace REEL_TARGET
}  // namespace reel::detail
