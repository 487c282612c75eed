#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>

#include "../../kernels/formulas/vector_sign.h"
#include "matrices.h"

namespace reel::detail {

std::int64_t factor_cholesky(MatrixRange range, const View& out, const View& a) noexcept {
  return with_element(out.dtype, [&]<class T>(std::type_identity<T>) {
    Matrices<T> triangles(out), matrices(a);
    return first_fault(range, [&](std::int64_t i) {
      Eigen::LLT<ColumnMatrix<T>> factors{ColumnMatrix<T>(matrices[i])};
      triangles[i] = ColumnMatrix<T>(factors.matrixL());
      // Eigen reports success for NaN.
      return factors.info() == Eigen::Success && (triangles[i].diagonal().array() > T(0)).all();
    });
  });
}

std::int64_t factor_qr(MatrixRange range, const View& q, const View& r, const View& a) noexcept {
  return with_element(a.dtype, [&]<class T>(std::type_identity<T>) {
    Matrices<T> orthogonal(q), triangles(r), matrices(a);
    return first_fault(range, [&](std::int64_t i) {
      Eigen::HouseholderQR<ColumnMatrix<T>> factors{ColumnMatrix<T>(matrices[i])};
      auto size = static_cast<Eigen::Index>(matrices.columns);
      ColumnMatrix<T> columns = ColumnMatrix<T>::Identity(static_cast<Eigen::Index>(matrices.rows), size);
      columns.applyOnTheLeft(factors.householderQ());
      orthogonal[i] = columns;
      triangles[i] = ColumnMatrix<T>(factors.matrixQR().topRows(size).template triangularView<Eigen::Upper>());
      return true;
    });
  });
}

namespace {

// For each column the sign, 1 or −1, by which it is to be multiplied.
ColumnVector<double> signs_of_columns(const ColumnMatrix<double>& columns) {
  ColumnVector<double> signs(columns.cols());
  for (Eigen::Index i = 0; i < columns.cols(); ++i)
    signs[i] = sign_of_vector(columns.data() + i * columns.rows(), columns.rows(), 1);
  return signs;
}

}  // namespace

// Singular vectors and eigenvectors of f32 are computed in f64, too: they are sensitive to rounding, and it takes less
// than twice the time. A view without data is of vectors that are not wanted.

std::int64_t factor_svd(MatrixRange range, const View& u, const View& s, const View& vh, const View& a) noexcept {
  return with_element(a.dtype, [&]<class T>(std::type_identity<T>) {
    Matrices<T> left(u), right(vh), matrices(a);
    Vectors<T> singular(s);
    return first_fault(range, [&](std::int64_t i) {
      if (!matrices[i].allFinite()) return false;
      Eigen::BDCSVD<ColumnMatrix<double>> factors(matrices[i].template cast<double>(),
                                                  left.first ? Eigen::ComputeThinU | Eigen::ComputeThinV : 0);
      singular[i] = factors.singularValues().template cast<T>();
      if (factors.info() != Eigen::Success || !left.first) return factors.info() == Eigen::Success;
      auto signs = signs_of_columns(factors.matrixU());
      left[i] = (factors.matrixU() * signs.asDiagonal()).template cast<T>();
      right[i] = (signs.asDiagonal() * factors.matrixV().transpose()).template cast<T>();
      return true;
    });
  });
}

std::int64_t factor_eigh(MatrixRange range, const View& values, const View& vectors, const View& a) noexcept {
  return with_element(a.dtype, [&]<class T>(std::type_identity<T>) {
    Matrices<T> columns(vectors), matrices(a);
    Vectors<T> rising(values);
    return first_fault(range, [&](std::int64_t i) {
      ColumnMatrix<double> lower = matrices[i].template cast<double>().template triangularView<Eigen::Lower>();
      if (!lower.allFinite()) return false;
      Eigen::SelfAdjointEigenSolver<ColumnMatrix<double>> factors(
          lower, columns.first ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
      rising[i] = factors.eigenvalues().template cast<T>();
      if (factors.info() != Eigen::Success || !columns.first) return factors.info() == Eigen::Success;
      auto signs = signs_of_columns(factors.eigenvectors());
      columns[i] = (factors.eigenvectors() * signs.asDiagonal()).template cast<T>();
      return true;
    });
  });
}

}  // namespace reel::detail
