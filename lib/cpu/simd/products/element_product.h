#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "gemm.h"

// Products without vectors. This header is compiled once per instruction set.

namespace reel::detail::inline REEL_TARGET {

/// c = a b of so few numbers that a kernel's call would take longer. The rows of c follow each other.
template <class T>
void multiply_elements(T* c, const Matrix<T>& a, const Matrix<T>& b) {
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < b.columns; ++j, ++c) {
      T sum = 0;
      for (std::int64_t k = 0; k < a.columns; ++k) sum += *a.at(i, k) * *b.at(k, j);
      *c = sum;
    }
}

/// c = a b of integers, which are added as unsigned, since they wrap around, or of bools, which are or-ed; `c_stride` is
/// the leading dimension of c.
template <class T>
void multiply_integers(T* c, std::int64_t c_stride, const Matrix<T>& a, const Matrix<T>& b) {
  for (std::int64_t i = 0; i < a.rows; ++i) {
    T* row = c + i * c_stride;
    std::fill_n(row, b.columns, T(0));
    for (std::int64_t k = 0; k < a.columns; ++k) {
      const T factor = *a.at(i, k), *from = b.at(k, 0);
      for (std::int64_t j = 0; j < b.columns; ++j)
        if constexpr (std::is_same_v<T, bool>)
          row[j] |= factor & from[j * b.column_stride];
        else
          row[j] = static_cast<T>(static_cast<std::uint64_t>(row[j]) +
                                  static_cast<std::uint64_t>(factor) *
                                      static_cast<std::uint64_t>(from[j * b.column_stride]));
    }
  }
}

}  // namespace reel::detail::inline REEL_TARGET
