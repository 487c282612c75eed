#pragma once

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "ops/table/table.h"

// Matrices of numbers, for references of the table's rows.

namespace reel_test {

/// In row-major order.
struct Matrix {
  std::int64_t rows, columns;
  std::vector<double> values;

  Matrix(std::int64_t rows, std::int64_t columns)
      : rows(rows), columns(columns), values(static_cast<std::size_t>(rows * columns)) {}
  double& operator()(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i * columns + j)]; }
  double operator()(std::int64_t i, std::int64_t j) const { return values[static_cast<std::size_t>(i * columns + j)]; }
};

inline Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = 0; k < a.columns; ++k)
      for (std::int64_t j = 0; j < b.columns; ++j) c(i, j) += a(i, k) * b(k, j);
  return c;
}

inline Matrix transposed(const Matrix& a) {
  Matrix b(a.columns, a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.columns; ++j) b(j, i) = a(i, j);
  return b;
}

inline Matrix identity(std::int64_t size) {
  Matrix a(size, size);
  for (std::int64_t i = 0; i < size; ++i) a(i, i) = 1;
  return a;
}

/// The matrices of an array one after the other.
inline std::vector<Matrix> matrices_of(const Array& x) {
  std::int64_t rows = x.shape[-2], columns = x.shape[-1], size = rows * columns;
  std::vector<Matrix> all;
  for (std::int64_t b = 0; size > 0 && b < x.shape.numel() / size; ++b) {
    Matrix& a = all.emplace_back(rows, columns);
    std::copy_n(x.values.begin() + b * size, size, a.values.begin());
  }
  return all;
}

/// The axes before the last two, followed by others.
inline reel::Shape with_batch(const reel::Shape& x, std::initializer_list<std::int64_t> sizes) {
  reel::Shape shape;
  for (int i = 0; i < x.rank() - 2; ++i) shape.push_back(x[i]);
  for (std::int64_t size : sizes) shape.push_back(size);
  return shape;
}

}  // namespace reel_test
