#pragma once

#include <cmath>
#include <limits>

#include "../vector/vector.h"
#include "reduction.h"

namespace reel::detail::inline REEL_TARGET {

/// The largest or smallest element, or magnitude, of each column, as a reduction of reduction.h; NaN if a column has
/// one.
template <class A, bool largest, bool of_magnitudes = false>
class ExtremeColumns {
 public:
  explicit ExtremeColumns(const View& out) : out_(&out) {}

  void start(std::int64_t, std::int64_t width, std::int64_t fold) { std::fill_n(best_, width * fold, worst()); }
  [[gnu::noinline]] void take(const A* rows, std::int64_t stride, std::int64_t count, std::int64_t columns,
                              std::int64_t) {
    using V = Vector<A>;
    auto row = [=](std::int64_t i, std::int64_t j) { return number(V::load(rows + i * stride + j)); };
    std::int64_t whole = columns / V::lanes * V::lanes, i = 0;
    for (; i + 4 <= count; i += 4)
      for (std::int64_t j = 0; j < whole; j += V::lanes) {
        V first = better(row(i, j), row(i + 1, j)), second = better(row(i + 2, j), row(i + 3, j));
        better(V::load(best_ + j), better(first, second)).store(best_ + j);
      }
    for (; i < count; ++i)
      for (std::int64_t j = 0; j < whole; j += V::lanes) better(V::load(best_ + j), row(i, j)).store(best_ + j);
    for (std::int64_t j = whole; j < columns; ++j)
      for (i = 0; i < count; ++i) best_[j] = better(best_[j], number(rows[i * stride + j]));
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
  static A better(A a, A b) { return (largest ? a > b : a < b) || a != a ? a : b; }
  static Vector<A> better(Vector<A> a, Vector<A> b) {
    Vector<A> chosen = select(largest ? a > b : a < b, a, b);
    if constexpr (std::is_integral_v<A>)
      return chosen;
    else
      return select(a == a, chosen, a);
  }
  static A magnitude(A x) { return std::abs(x); }
  static Vector<A> magnitude(Vector<A> x) { return hn::Abs(x.raw); }
  template <class N>
  static N number(N x) {
    if constexpr (of_magnitudes)
      return magnitude(x);
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

}  // namespace reel::detail::inline REEL_TARGET
