#pragma once

#include <cmath>
#include <limits>

#include "reduction.h"

namespace reel::detail::inline REEL_TARGET {

/// Column sums, as a reduction of reduction.h. Eight rows are added in pairs, and the rounding error of adding such a
/// group to the total is accumulated and added at the end: the error does not grow with the number of rows. Folded
/// columns are added in pairs.
template <class A>
class SumColumns {
 public:
  explicit SumColumns(const View& out) : out_(&out) {}

  // Adjacent sums take less time if the elements of the next are fetched ahead: see "Sums" in tools/benchmark/README.md.
  void expect_large() { is_large_ = true; }

  void start(std::int64_t, std::int64_t width, std::int64_t fold) {
    std::fill_n(total_, width * fold, Number(0));
    std::fill_n(lost_, width * fold, Number(0));
  }
  [[gnu::noinline]] void take(const A* __restrict rows, std::int64_t stride, std::int64_t count, std::int64_t columns,
                              std::int64_t) {
    Number* __restrict total = total_, * __restrict lost = lost_;
    std::int64_t i = 0;
    bool is_long = count * columns * static_cast<std::int64_t>(sizeof(A)) >= least_prefetched_bytes;
    // Rows without gaps are followed by those of the next call.
    std::int64_t last = is_large_ && stride == columns ? count : is_long ? count - 8 * (groups_ahead + 1) : -1;
    for (; i + 8 <= count; i += 8) {
      if (i <= last) prefetch(rows + (i + 8 * groups_ahead) * stride, stride, columns);
      const A *r0 = rows + i * stride, *r1 = r0 + stride, *r2 = r1 + stride, *r3 = r2 + stride;
      const A *r4 = r3 + stride, *r5 = r4 + stride, *r6 = r5 + stride, *r7 = r6 + stride;
      for (std::int64_t j = 0; j < columns; ++j) {
        Number low = (Number(r0[j]) + Number(r1[j])) + (Number(r2[j]) + Number(r3[j]));
        Number high = (Number(r4[j]) + Number(r5[j])) + (Number(r6[j]) + Number(r7[j]));
        add(total[j], lost[j], low + high);
      }
    }
    for (; i + 4 <= count; i += 4) {
      const A *r0 = rows + i * stride, *r1 = r0 + stride, *r2 = r1 + stride, *r3 = r2 + stride;
      for (std::int64_t j = 0; j < columns; ++j)
        add(total[j], lost[j], (Number(r0[j]) + Number(r1[j])) + (Number(r2[j]) + Number(r3[j])));
    }
    for (; i < count; ++i)
      for (std::int64_t j = 0; j < columns; ++j) add(total[j], lost[j], Number(rows[i * stride + j]));
  }
  void fold(std::int64_t width, std::int64_t fold) {
    if (fold == 1) return;
    for (std::int64_t j = 0; j < fold * width; ++j) total_[j] = whole(j);
    for (std::int64_t half = fold / 2 * width; half >= width; half /= 2)
      for (std::int64_t j = 0; j < half; ++j) total_[j] += total_[j + half];
    std::fill_n(lost_, width, Number(0));
  }
  void join(const SumColumns& later, std::int64_t width) {
    for (std::int64_t j = 0; j < width; ++j) {
      add(total_[j], lost_[j], later.total_[j]);
      lost_[j] += later.lost_[j];
    }
  }
  void finish(std::int64_t first, std::int64_t width) {
    A sums[most_columns];
    results(sums, width);
    write_results(*out_, first, sums, width);
  }

  void results(A* sums, std::int64_t width) const {
    for (std::int64_t j = 0; j < width; ++j) sums[j] = static_cast<A>(whole(j));
  }

 private:
  // Integers are summed as unsigned, so that overflow wraps around.
  using Number = std::conditional_t<std::is_integral_v<A>, std::uint64_t, A>;

  // Processors do not foresee eight streams that alternate within a page: fetched ahead into the second-level cache, they
  // reach the speed of a plain loop, see "Sums" in tools/benchmark/README.md.
  static constexpr std::int64_t least_prefetched_bytes = std::int64_t{1} << 17;
  static constexpr std::int64_t groups_ahead = 4;

  static void prefetch(const A* rows, std::int64_t stride, std::int64_t columns) {
    constexpr std::int64_t line = 64 / sizeof(A);
    for (int row = 0; row < 8; ++row)
      for (std::int64_t j = 0; j < columns; j += line) __builtin_prefetch(rows + row * stride + j, 0, 2);
  }

  static void add(Number& total, Number& lost, Number term) {
    Number sum = total + term;
    if constexpr (!std::is_integral_v<A>) {
      Number taken = sum - total;
      lost += (total - (sum - taken)) + (term - taken);
    }
    total = sum;
  }

  Number whole(std::int64_t j) const {
    if constexpr (std::is_integral_v<A>)
      return total_[j];
    else  // what is lost from an infinity is NaN
      return std::abs(total_[j]) <= std::numeric_limits<A>::max() ? total_[j] + lost_[j] : total_[j];
  }

  const View* out_;
  bool is_large_ = false;
  Number total_[most_columns], lost_[most_columns];
};

}  // namespace reel::detail::inline REEL_TARGET
