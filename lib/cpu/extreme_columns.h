#pragma once

#include <cmath>
#include <limits>

#include "reduction.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// The largest or smallest element of each column, or magnitude of one, as reduction.h wants them; NaN if one is.
template <class A, bool largest, bool of_magnitudes = false>
class ExtremeColumns {
 public:
  explicit ExtremeColumns(const View& out) : out_(&out) {}

  void start(std::int64_t, std::int64_t width, std::int64_t fold) { std::fill_n(best_, width * fold, worst()); }
  [[gnu::noinline]] void take(const A* __restrict rows, std::int64_t stride, std::int64_t count, std::int64_t columns,
                              std::int64_t) {
    A* __restrict best = best_;
    std::int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
      const A *r0 = rows + i * stride, *r1 = r0 + stride, *r2 = r1 + stride, *r3 = r2 + stride;
      for (std::int64_t j = 0; j < columns; ++j) {
        A first = better(number(r0[j]), number(r1[j])), second = better(number(r2[j]), number(r3[j]));
        best[j] = better(best[j], better(first, second));
      }
    }
    for (; i < count; ++i)
      for (std::int64_t j = 0; j < columns; ++j) best[j] = better(best[j], number(rows[i * stride + j]));
  }
  void fold(std::int64_t width, std::int64_t fold) {
    for (std::int64_t half = fold / 2 * width; half >= width; half /= 2)
      for (std::int64_t j = 0; j < half; ++j) best_[j] = better(best_[j], best_[j + half]);
  }
  void join(const ExtremeColumns& later, std::int64_t width) {
    for (std::int64_t j = 0; j < width; ++j) best_[j] = better(best_[j], later.best_[j]);
  }
  void finish(std::int64_t first, std::int64_t width) { write_results(*out_, first, best_, width); }

 private:
  static A better(A a, A b) { return (largest ? a > b : a < b) | (a != a) ? a : b; }
  static A number(A x) {
    if constexpr (of_magnitudes)
      return std::abs(x);
    else
      return x;
  }
  static constexpr A worst() {
    using Limits = std::numeric_limits<A>;
    if constexpr (Limits::has_infinity)
      return largest ? -Limits::infinity() : Limits::infinity();
    else
      return largest ? Limits::min() : Limits::max();
  }

  const View* out_;
  A best_[most_columns];
};

}  // namespace REEL_TARGET
}  // namespace reel::detail
