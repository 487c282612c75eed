#include <algorithm>
#include <cmath>
#include <utility>

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
std::int64_t solve_each(MatrixRange range, const View& out, const View& a, Right right) noexcept {
  Matrices<T> solutions(out), matrices(a);
  return first_fault(range, [&](std::int64_t i) {
    Factors<T> factors{ColumnMatrix<T>(matrices[i])};
    if (is_singular(factors)) return false;
    solutions[i] = factors.solve(right(i));
    return true;
  });
}

std::int64_t solve(MatrixRange range, const View& out, const View& a, const View& b) noexcept {
  return with_element(out.dtype, [&]<class T>(std::type_identity<T>) {
    Matrices<T> right(b);
    return solve_each<T>(range, out, a, [&](std::int64_t i) { return ColumnMatrix<T>(right[i]); });
  });
}

std::int64_t invert(MatrixRange range, const View& out, const View& a) noexcept {
  return with_element(out.dtype, [&]<class T>(std::type_identity<T>) {
    auto size = static_cast<Eigen::Index>(a.dims[a.rank - 1]);
    return solve_each<T>(range, out, a,
                         [&](std::int64_t) { return ColumnMatrix<T>(ColumnMatrix<T>::Identity(size, size)); });
  });
}

template <class A, class X>
void solve_triangle(const A& a, X&& x, bool upper, bool unit) {
  auto in_place = [&](const auto& matrix) { matrix.solveInPlace(x); };
  if (upper)
    unit ? in_place(a.template triangularView<Eigen::UnitUpper>())
         : in_place(a.template triangularView<Eigen::Upper>());
  else
    unit ? in_place(a.template triangularView<Eigen::UnitLower>())
         : in_place(a.template triangularView<Eigen::Lower>());
}

std::int64_t triangular_solve(MatrixRange range, const View& out, const View& a, const View& b,
                              TriangleAttributes triangle) noexcept {
  return with_element(out.dtype, [&]<class T>(std::type_identity<T>) {
    Matrices<T> solutions(out), matrices(a), right(b);
    return first_fault(range, [&](std::int64_t i) {
      auto matrix = matrices[i];
      if (triangle.unit_diagonal == 0 && (matrix.diagonal().array() == T(0)).any()) return false;
      ColumnMatrix<T> x = right[i];
      // The transpose of an upper triangle is a lower one.
      auto run = [&](auto&& columns) {
        bool upper = triangle.upper != 0, unit = triangle.unit_diagonal != 0;
        triangle.transposed ? solve_triangle(matrix.transpose(), columns, !upper, unit)
                            : solve_triangle(matrix, columns, upper, unit);
      };
      x.cols() == 1 ? run(x.col(0)) : run(x);
      solutions[i] = x;
      return true;
    });
  });
}

// Eliminates columns [begin, end) below the diagonal within themselves; rows are exchanged as a whole.
template <class T>
void eliminate(ColumnMatrix<T>& a, Eigen::Map<ColumnVector<std::int64_t>> order, Eigen::Index begin, Eigen::Index end) {
  for (Eigen::Index k = begin; k < end; ++k) {
    Eigen::Index below = a.rows() - k - 1, largest = 0;
    a.col(k).tail(below + 1).cwiseAbs().maxCoeff(&largest);
    if (largest != 0) {
      a.row(k).swap(a.row(k + largest));
      std::swap(order[k], order[k + largest]);
    }
    if (a(k, k) != T(0)) a.col(k).tail(below) /= a(k, k);
    a.block(k + 1, k + 1, below, end - k - 1).noalias() -= a.col(k).tail(below) * a.row(k).segment(k + 1, end - k - 1);
  }
}

// Eigen's factors are those of square matrices only.
std::int64_t factor_lu(MatrixRange range, const View& factors, const View& order, const View& a) noexcept {
  constexpr Eigen::Index block = 32;
  return with_element(a.dtype, [&]<class T>(std::type_identity<T>) {
    Matrices<T> results(factors), matrices(a);
    Vectors<std::int64_t> orders(order);
    return first_fault(range, [&](std::int64_t i) {
      ColumnMatrix<T> left = matrices[i];
      for (Eigen::Index size = std::min(left.rows(), left.cols()), k = 0; k < size; k += block) {
        Eigen::Index width = std::min(block, size - k), next = k + width, rows = left.rows() - next;
        eliminate(left, orders[i], k, next);
        auto top = left.block(k, next, width, left.cols() - next);
        left.block(k, k, width, width).template triangularView<Eigen::UnitLower>().solveInPlace(top);
        left.bottomRightCorner(rows, left.cols() - next).noalias() -= left.block(next, k, rows, width) * top;
      }
      results[i] = left;
      return true;
    });
  });
}

// Calls f(index, factors) for every matrix.
template <class T, class F>
std::int64_t factor_each(MatrixRange range, const View& a, F f) noexcept {
  Matrices<T> matrices(a);
  return first_fault(range, [&](std::int64_t i) {
    f(i, Factors<T>{ColumnMatrix<T>(matrices[i])});
    return true;
  });
}

std::int64_t determinant(MatrixRange range, const View& out, const View& a) noexcept {
  return with_element(out.dtype, [&]<class T>(std::type_identity<T>) {
    T* to = out.as<T>();
    return factor_each<T>(range, a, [&](std::int64_t i, const Factors<T>& factors) { to[i] = factors.determinant(); });
  });
}

std::int64_t log_determinant(MatrixRange range, const View& sign, const View& logarithm, const View& a) noexcept {
  return with_element(sign.dtype, [&]<class T>(std::type_identity<T>) {
    T *signs = sign.as<T>(), *logarithms = logarithm.as<T>();
    return factor_each<T>(range, a, [&](std::int64_t i, const Factors<T>& factors) {
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

constexpr DecompositionsTable table{
    .solve = solve,
    .triangular_solve = triangular_solve,
    .invert = invert,
    .determinant = determinant,
    .log_determinant = log_determinant,
    .cholesky = factor_cholesky,
    .lu = factor_lu,
    .qr = factor_qr,
    .svd = factor_svd,
    .eigh = factor_eigh,
};

}  // namespace
}  // namespace reel::detail

extern "C" [[gnu::visibility("default")]] const void* reel_module_table(std::uint32_t version,
                                                                        std::size_t bytes) noexcept {
  return reel::detail::table_if_compatible(reel::detail::table, version, bytes);
}
