#include <cmath>

#include <Eigen/LU>

#include "matrices.h"

namespace reel::detail {
namespace {

template <class T>
using Factors = Eigen::PartialPivLU<ColumnMatrix<T>>;

template <class T>
bool is_singular(const Factors<T>& factors) {
  return (factors.matrixLU().diagonal().array() == T(0)).any();
}

// out = a⁻¹ right(index), unless a is singular.
template <class T, class Right>
std::int64_t solve_each(Matrices<T> out, Matrices<T> a, MatrixRange range, Right right) noexcept {
  return first_fault(range, [&](std::int64_t i) {
    Factors<T> factors{ColumnMatrix<T>(matrix(a, i))};
    if (is_singular(factors)) return false;
    matrix(out, i) = factors.solve(right(i));
    return true;
  });
}

template <class T>
std::int64_t solve(Matrices<T> out, Matrices<T> a, Matrices<T> b, MatrixRange range) noexcept {
  return solve_each(out, a, range, [&](std::int64_t i) { return ColumnMatrix<T>(matrix(b, i)); });
}

template <class T>
std::int64_t invert(Matrices<T> out, Matrices<T> a, MatrixRange range) noexcept {
  auto size = static_cast<Eigen::Index>(a.rows);
  return solve_each(out, a, range,
                    [&](std::int64_t) { return ColumnMatrix<T>(ColumnMatrix<T>::Identity(size, size)); });
}

template <class T>
void solve_triangle(const ColumnMatrix<T>& a, ColumnMatrix<T>& x, Triangle triangle) {
  auto in_place = [&](const auto& matrix) { matrix.solveInPlace(x); };
  // The transpose of an upper triangle is a lower one; a copy is cheap relative to the solution.
  if (triangle.is_transposed) {
    triangle.is_transposed = false;
    triangle.is_upper = !triangle.is_upper;
    return solve_triangle<T>(a.transpose(), x, triangle);
  }
  if (triangle.is_upper)
    triangle.has_unit_diagonal ? in_place(a.template triangularView<Eigen::UnitUpper>())
                               : in_place(a.template triangularView<Eigen::Upper>());
  else
    triangle.has_unit_diagonal ? in_place(a.template triangularView<Eigen::UnitLower>())
                               : in_place(a.template triangularView<Eigen::Lower>());
}

template <class T>
std::int64_t triangular_solve(Matrices<T> out, Matrices<T> a, Matrices<T> b, Triangle triangle,
                              MatrixRange range) noexcept {
  return first_fault(range, [&](std::int64_t i) {
    auto triangular = matrix(a, i);
    if (!triangle.has_unit_diagonal && (triangular.diagonal().array() == T(0)).any()) return false;
    ColumnMatrix<T> x = matrix(b, i);
    solve_triangle<T>(triangular, x, triangle);
    matrix(out, i) = x;
    return true;
  });
}

// Calls f(index, factors) for every matrix.
template <class T, class F>
std::int64_t factor_each(Matrices<T> a, MatrixRange range, F f) noexcept {
  return first_fault(range, [&](std::int64_t i) {
    f(i, Factors<T>{ColumnMatrix<T>(matrix(a, i))});
    return true;
  });
}

template <class T>
std::int64_t determinant(T* out, Matrices<T> a, MatrixRange range) noexcept {
  return factor_each(a, range, [&](std::int64_t i, const Factors<T>& factors) { out[i] = factors.determinant(); });
}

template <class T>
std::int64_t log_determinant(T* sign, T* logarithm, Matrices<T> a, MatrixRange range) noexcept {
  return factor_each(a, range, [&](std::int64_t i, const Factors<T>& factors) {
    T product = static_cast<T>(factors.permutationP().determinant()), sum = 0;
    for (T pivot : factors.matrixLU().diagonal()) {
      product *= pivot > 0 ? T(1) : pivot < 0 ? T(-1) : pivot;
      sum += std::log(std::abs(pivot));
    }
    sign[i] = product;
    logarithm[i] = sum;
  });
}

template <class T>
DecompositionKernels<T> all_kernels() {
  DecompositionKernels<T> kernels{};
  kernels.solve = solve<T>;
  kernels.triangular_solve = triangular_solve<T>;
  kernels.invert = invert<T>;
  kernels.determinant = determinant<T>;
  kernels.log_determinant = log_determinant<T>;
  fill_decompositions(kernels);
  return kernels;
}

}  // namespace
}  // namespace reel::detail

extern "C" [[gnu::visibility("default")]] const void* reel_module_table(std::uint32_t version,
                                                                        std::size_t bytes) noexcept {
  using namespace reel::detail;
  static const DecompositionsTable table{all_kernels<float>(), all_kernels<double>()};
  return table_if_compatible(table, version, bytes);
}
