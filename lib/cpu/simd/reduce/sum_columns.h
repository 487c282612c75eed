#pragma once

#include <cmath>
#include <limits>
#include <utility>

#include "../vector/vector.h"
#include "reduction.h"

namespace reel::detail::inline REEL_TARGET {

/// Column sums, as a reduction of reduction.h. Sixteen rows, of a line eight, are added in pairs, and the rounding error of
/// adding such a group to the total is accumulated and added at the end: the error does not grow with the number of rows.
/// Folded columns are added in pairs.
template <class A>
class SumColumns {
 public:
  explicit SumColumns(const View& out) : out_(&out) {}

  // Adjacent sums take less time if the elements of the next are fetched ahead: see "Sums" in tools/benchmark/README.md.
  void expect_large() { is_large_ = true; }

  void start(std::int64_t at, std::int64_t, std::int64_t width, std::int64_t fold) {
    at_ = at;
    std::fill_n(total_ + at, width * fold, Number(0));
    std::fill_n(lost_ + at, width * fold, Number(0));
  }
  void take(const A* rows, std::int64_t stride, std::int64_t count, std::int64_t columns, std::int64_t) {
    std::int64_t i = 0;
    bool is_long = count * columns * static_cast<std::int64_t>(sizeof(A)) >= least_prefetched_bytes;
    // Rows without gaps are followed by those of the next call.
    std::int64_t last = is_large_ && stride == columns ? count : is_long ? count - (rows_ahead + 16) : -1;
    for (; i + 16 <= count; i += 16) {
      if (i <= last) prefetch(rows + (i + rows_ahead) * stride, stride, columns);
      take_group<16>(rows + i * stride, stride, columns);
    }
    for (; i + 4 <= count; i += 4) take_group<4>(rows + i * stride, stride, columns);
    for (; i < count; ++i) take_group<1>(rows + i * stride, stride, columns);
  }
  [[gnu::noinline]] void take_line(const A* x, std::int64_t count, std::int64_t times, std::int64_t stride) {
    Line line(reinterpret_cast<Wrapped*>(total_ + at_), reinterpret_cast<Wrapped*>(lost_ + at_));
    for (; times > 0; --times, x += stride) line.take(reinterpret_cast<const Wrapped*>(x), count, is_large_);
    line.store(reinterpret_cast<Wrapped*>(total_ + at_), reinterpret_cast<Wrapped*>(lost_ + at_));
  }
  [[gnu::noinline]] void reduce_line(std::int64_t at, const A* x, std::int64_t count, std::int64_t) {
    Line line;
    line.take(reinterpret_cast<const Wrapped*>(x), count, is_large_);
    set(at, static_cast<Number>(line.sum()));
  }
  void set(std::int64_t at, std::conditional_t<std::is_integral_v<A>, std::uint64_t, A> sum) {
    total_[at] = sum;
    lost_[at] = 0;
  }
  void fold(std::int64_t to, std::int64_t width, std::int64_t fold) {
    if (fold == 1) return;
    Number* __restrict total = total_ + at_;
    for (std::int64_t j = 0; j < fold * width; ++j) total[j] = whole(at_ + j);
    if (width == 1 && fold == line_columns) {
      for (std::int64_t half = line_columns / 2; half >= 1; half /= 2)
        for (std::int64_t j = 0; j < half; ++j) total[j] += total[j + half];
    } else {
      for (std::int64_t half = fold / 2 * width; half >= width; half /= 2)
        for (std::int64_t j = 0; j < half; ++j) total[j] += total[j + half];
    }
    std::copy_n(total, width, total_ + to);
    std::fill_n(lost_ + to, width, Number(0));
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
  static constexpr std::int64_t rows_ahead = 32;

  // The elements, as numbers that wrap around.
  using Wrapped = std::conditional_t<std::is_integral_v<A>, std::int64_t, A>;
  using V = Vector<Wrapped>;

  // The sum in pairs of vectors that are a stride apart. Multiples of the stride are few, so that all stay in registers.
  template <int rows, class Load>
  HWY_INLINE static V pairwise(const Wrapped* p, std::int64_t stride, Load load) {
    if constexpr (rows == 1) {
      return load(p);
    } else if constexpr (rows == 4) {
      return (load(p) + load(p + stride)) + (load(p + 2 * stride) + load(p + 3 * stride));
    } else {
      return pairwise<rows / 2>(p, stride, load) + pairwise<rows / 2>(p + rows / 2 * stride, stride, load);
    }
  }
  template <int rows>
  [[gnu::noinline]] void take_group(const A* given, std::int64_t stride, std::int64_t columns) {
    auto* from = reinterpret_cast<const Wrapped*>(given);
    auto* total = reinterpret_cast<Wrapped*>(total_ + at_);
    auto* lost = reinterpret_cast<Wrapped*>(lost_ + at_);
    auto take = [&](std::int64_t j, auto load) {
      V sum = load(total + j), error = load(lost + j);
      add(sum, error, pairwise<rows>(from + j, stride, load));
      return std::pair(sum, error);
    };
    std::int64_t j = 0;
    for (; j + V::lanes <= columns; j += V::lanes) {
      auto [sum, error] = take(j, [](const Wrapped* p) { return V::load(p); });
      sum.store(total + j);
      error.store(lost + j);
    }
    if (std::int64_t rest = columns - j) {
      auto [sum, error] = take(j, [=](const Wrapped* p) { return V::load(p, rest); });
      sum.store(total + j, rest);
      error.store(lost + j, rest);
    }
  }

  // Sums of a line's columns.
  class Line {
   public:
    Line() : Line(V(0)) {}
    Line(const Wrapped* total, const Wrapped* lost) {
      for (int p = 0; p < parts; ++p) {
        total_[p] = V::load(total + p * V::lanes).raw;
        lost_[p] = V::load(lost + p * V::lanes).raw;
      }
    }
    void store(Wrapped* total, Wrapped* lost) const {
      for (int p = 0; p < parts; ++p) {
        V(total_[p]).store(total + p * V::lanes);
        V(lost_[p]).store(lost + p * V::lanes);
      }
    }
    void take(const Wrapped* x, std::int64_t count, bool is_large) {
      constexpr std::int64_t group = 8 * line_columns;
      std::int64_t whole = count / group * group;
      if (is_large || count * static_cast<std::int64_t>(sizeof(A)) >= least_prefetched_bytes)
        take_groups<true>(x, whole);
      else
        take_groups<false>(x, whole);
      x += whole;
      count -= whole;
      for (int p = 0; count > 0 && p < parts; ++p, x += V::lanes, count -= V::lanes) add(p, rest(x, count));
    }
    Wrapped sum() const {
      hn::Vec<typename V::Tag> sums[parts];
      for (int p = 0; p < parts; ++p) sums[p] = whole(V(total_[p]), V(lost_[p])).raw;
      for (int half = parts / 2; half >= 1; half /= 2)
        for (int p = 0; p < half; ++p) sums[p] = (V(sums[p]) + V(sums[p + half])).raw;
      return sum_of_lanes(V(sums[0]));
    }

   private:
    static constexpr int parts = static_cast<int>(line_columns / V::lanes);

    explicit Line(V zero) {
      for (int p = 0; p < parts; ++p) total_[p] = lost_[p] = zero.raw;
    }
    static V four(const Wrapped* x) {
      auto row = [=](std::int64_t k) { return V::load(x + k * line_columns); };
      return (row(0) + row(1)) + (row(2) + row(3));
    }
    // Up to seven rows, and a partial one.
    static V rest(const Wrapped* x, std::int64_t count) {
      std::int64_t rows = count / line_columns;
      V sum(0);
      if (rows & 4) {
        sum = four(x);
        x += 4 * line_columns;
      }
      if (rows & 2) {
        sum = sum + (V::load(x) + V::load(x + line_columns));
        x += 2 * line_columns;
      }
      V last(0);
      if (rows & 1) {
        last = V::load(x);
        x += line_columns;
      }
      std::int64_t left = count % line_columns;
      if (left >= V::lanes)
        last = last + V::load(x);
      else if (left > 0)
        last = last + V::load(x, left);
      return sum + last;
    }
    template <bool prefetches>
    void take_groups(const Wrapped* x, std::int64_t count) {
      constexpr std::int64_t group = 8 * line_columns;
      for (std::int64_t i = 0; i < count; i += group) {
        if constexpr (prefetches)
          for (std::int64_t k = 0; k < group; k += 64 / sizeof(A))
            __builtin_prefetch(x + i + rows_ahead * line_columns + k, 0, 2);
        for (int p = 0; p < parts; ++p) {
          const Wrapped* from = x + i + p * V::lanes;
          add(p, four(from) + four(from + 4 * line_columns));
        }
      }
    }
    void add(int p, V term) {
      V total(total_[p]), lost(lost_[p]);
      SumColumns::add(total, lost, term);
      total_[p] = total.raw;
      lost_[p] = lost.raw;
    }
    static V whole(V total, V lost) {
      if constexpr (std::is_integral_v<A>)
        return total;
      else  // what is lost from an infinity is NaN
        return select(abs(total) <= V::repeat(std::numeric_limits<A>::max()), total + lost, total);
    }

    hn::Vec<typename V::Tag> total_[parts], lost_[parts];
  };

  static void prefetch(const A* rows, std::int64_t stride, std::int64_t columns) {
    constexpr std::int64_t line = 64 / sizeof(A);
    for (int row = 0; row < 16; ++row)
      for (std::int64_t j = 0; j < columns; j += line) __builtin_prefetch(rows + row * stride + j, 0, 2);
  }

  template <class N>
  static void add(N& total, N& lost, N term) {
    N sum = total + term;
    if constexpr (!std::is_integral_v<A>) {
      N taken = sum - total;
      lost = lost + ((total - (sum - taken)) + (term - taken));
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
  std::int64_t at_ = 0;
  Number total_[most_columns], lost_[most_columns];
};

}  // namespace reel::detail::inline REEL_TARGET
