#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>

#include "../../kernels/formulas/vector_sign.h"
#include "matrices.h"

namespace reel::detail {
namespace {

template <class T>
std::int64_t factor_cholesky(Matrices<T> out, Matrices<T> a, MatrixRange range) noexcept {
  return first_fault(range, [&](std::int64_t i) {
    Eigen::LLT<ColumnMatrix<T>> factors{ColumnMatrix<T>(matrix(a, i))};
    auto triangle = matrix(out, i);
    triangle = ColumnMatrix<T>(factors.matrixL());
    // Eigen reports success for NaN.
    return factors.info() == Eigen::Success && (triangle.diagonal().array() > T(0)).all();
  });
}

template <class T>
std::int64_t factor_qr(Matrices<T> q, Matrices<T> r, Matrices<T> a, MatrixRange range) noexcept {
  return first_fault(range, [&](std::int64_t i) {
    Eigen::HouseholderQR<ColumnMatrix<T>> factors{ColumnMatrix<T>(matrix(a, i))};
    auto size = static_cast<Eigen::Index>(a.columns);
    ColumnMatrix<T> columns = ColumnMatrix<T>::Identity(static_cast<Eigen::Index>(a.rows), size);
    columns.applyOnTheLeft(factors.householderQ());
    matrix(q, i) = columns;
    matrix(r, i) = ColumnMatrix<T>(factors.matrixQR().topRows(size).template triangularView<Eigen::Upper>());
    return true;
  });
}

// For each column the sign, 1 or −1, by which it is to be multiplied.
ColumnVector<double> signs_of_columns(const ColumnMatrix<double>& columns) {
  ColumnVector<double> signs(columns.cols());
  for (Eigen::Index i = 0; i < columns.cols(); ++i)
    signs[i] = sign_of_vector(columns.data() + i * columns.rows(), columns.rows(), 1);
  return signs;
}

// Singular vectors and eigenvectors of f32 are computed in f64, too: they are sensitive to rounding, and it takes less
// than twice the time.

template <class T>
std::int64_t factor_svd(Matrices<T> u, T* s, Matrices<T> vh, Matrices<T> a, MatrixRange range) noexcept {
  return first_fault(range, [&](std::int64_t i) {
    ColumnMatrix<double> given = matrix(a, i).template cast<double>();
    if (!given.allFinite()) return false;
    Eigen::BDCSVD<ColumnMatrix<double>> factors(given, Eigen::ComputeThinU | Eigen::ComputeThinV);
    auto signs = signs_of_columns(factors.matrixU());
    matrix(u, i) = (factors.matrixU() * signs.asDiagonal()).template cast<T>();
    vector(s, u.columns, i) = factors.singularValues().template cast<T>();
    matrix(vh, i) = (signs.asDiagonal() * factors.matrixV().transpose()).template cast<T>();
    return factors.info() == Eigen::Success;
  });
}

template <class T>
std::int64_t factor_eigh(T* values, Matrices<T> vectors, Matrices<T> a, MatrixRange range) noexcept {
  return first_fault(range, [&](std::int64_t i) {
    ColumnMatrix<double> lower = matrix(a, i).template cast<double>().template triangularView<Eigen::Lower>();
    if (!lower.allFinite()) return false;
    Eigen::SelfAdjointEigenSolver<ColumnMatrix<double>> factors(lower);
    vector(values, a.rows, i) = factors.eigenvalues().template cast<T>();
    auto signs = signs_of_columns(factors.eigenvectors());
    matrix(vectors, i) = (factors.eigenvectors() * signs.asDiagonal()).template cast<T>();
    return factors.info() == Eigen::Success;
  });
}

}  // namespace

template <class T>
void fill_decompositions(DecompositionKernels<T>& kernels) {
  kernels.cholesky = factor_cholesky<T>;
  kernels.qr = factor_qr<T>;
  kernels.svd = factor_svd<T>;
  kernels.eigh = factor_eigh<T>;
}

template void fill_decompositions(DecompositionKernels<float>& kernels);
template void fill_decompositions(DecompositionKernels<double>& kernels);

}  // namespace reel::detail
