#include <cmath>

#include <Eigen/LU>

#include "../cpu_kernels.h"
#include "linear_algebra.h"

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
std::int64_t solve_each(const View& out, const View& a, Right right) {
  if (out.numel == 0) return -1;
  Matrices<T> solutions(out), matrices(a);
  return first_fault(a, [&](std::int64_t i) {
    Factors<T> factors{ColumnMatrix<T>(matrices[i])};
    if (is_singular(factors)) return false;
    solutions[i] = factors.solve(right(i));
    return true;
  });
}

std::int64_t solve(const View& out, const View& a, const View& b) {
  return with_element(out.dtype, [&]<class T>(std::type_identity<T>) {
    Matrices<T> right(b);
    return solve_each<T>(out, a, [&](std::int64_t i) { return ColumnMatrix<T>(right[i]); });
  });
}

std::int64_t invert(const View& out, const View& a) {
  return with_element(out.dtype, [&]<class T>(std::type_identity<T>) {
    auto size = static_cast<Eigen::Index>(a.dims[a.rank - 1]);
    return solve_each<T>(out, a, [&](std::int64_t) { return ColumnMatrix<T>(ColumnMatrix<T>::Identity(size, size)); });
  });
}

template <class T>
void solve_triangle(const ColumnMatrix<T>& a, ColumnMatrix<T>& x, TriangleAttributes triangle) {
  auto in_place = [&](const auto& matrix) { matrix.solveInPlace(x); };
  bool unit = triangle.unit_diagonal != 0;
  // The transpose of an upper triangle is a lower one; a copy is cheap relative to the solution.
  if (triangle.transposed != 0) {
    triangle.transposed = 0;
    triangle.upper = triangle.upper == 0;
    return solve_triangle<T>(a.transpose(), x, triangle);
  }
  if (triangle.upper != 0)
    unit ? in_place(a.template triangularView<Eigen::UnitUpper>())
         : in_place(a.template triangularView<Eigen::Upper>());
  else
    unit ? in_place(a.template triangularView<Eigen::UnitLower>())
         : in_place(a.template triangularView<Eigen::Lower>());
}

std::int64_t triangular_solve(const View& out, const View& a, const View& b, TriangleAttributes triangle) {
  if (out.numel == 0) return -1;
  return with_element(out.dtype, [&]<class T>(std::type_identity<T>) {
    Matrices<T> solutions(out), matrices(a), right(b);
    return first_fault(a, [&](std::int64_t i) {
      if (triangle.unit_diagonal == 0 && (matrices[i].diagonal().array() == T(0)).any()) return false;
      ColumnMatrix<T> x = right[i];
      solve_triangle<T>(matrices[i], x, triangle);
      solutions[i] = x;
      return true;
    });
  });
}

// Calls f(index, factors) for every matrix.
template <class T, class F>
void factor_each(const View& a, F f) {
  Matrices<T> matrices(a);
  first_fault(a, [&](std::int64_t i) {
    f(i, Factors<T>{ColumnMatrix<T>(matrices[i])});
    return true;
  });
}

void determinant(const View& out, const View& a) {
  with_element(out.dtype, [&]<class T>(std::type_identity<T>) {
    T* to = out.as<T>();
    if (a.numel == 0) return void(std::fill_n(to, out.numel, T(1)));
    factor_each<T>(a, [&](std::int64_t i, const Factors<T>& factors) { to[i] = factors.determinant(); });
  });
}

void log_determinant(const View& sign, const View& logarithm, const View& a) {
  with_element(sign.dtype, [&]<class T>(std::type_identity<T>) {
    T *signs = sign.as<T>(), *logarithms = logarithm.as<T>();
    std::fill_n(signs, sign.numel, T(1));
    std::fill_n(logarithms, logarithm.numel, T(0));
    if (a.numel == 0) return;
    factor_each<T>(a, [&](std::int64_t i, const Factors<T>& factors) {
      T product = static_cast<T>(factors.permutationP().determinant()), sum = 0;
      for (T pivot : factors.matrixLU().diagonal()) {
        product *= pivot > 0 ? T(1) : pivot < 0 ? T(-1) : pivot;
        sum += std::log(std::abs(pivot));
      }
      signs[i] = product;
      logarithms[i] = sum;
    });
  });
}

constexpr LinearAlgebraKernels linear_algebra_kernels{
    .solve = solve,
    .triangular_solve = triangular_solve,
    .invert = invert,
    .determinant = determinant,
    .log_determinant = log_determinant,
    .cholesky = factor_cholesky,
    .qr = factor_qr,
    .svd = factor_svd,
    .eigh = factor_eigh,
    .addmm = nullptr,
};

}  // namespace

void fill_linear_algebra(KernelTable& table) { table.linear_algebra = &linear_algebra_kernels; }

}  // namespace reel::detail
