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

  void start(std::int64_t at, std::int64_t, std::int64_t width, std::int64_t fold) {
    at_ = at;
    std::fill_n(best_ + at, width * fold, worst());
  }
  [[gnu::noinline]] void take(const A* rows, std::int64_t stride, std::int64_t count, std::int64_t columns,
                              std::int64_t) {
    A* best = best_ + at_;
    auto row = [=](std::int64_t i, std::int64_t j) { return number(V::load(rows + i * stride + j)); };
    std::int64_t whole = columns / V::lanes * V::lanes, i = 0;
    for (; i + 4 <= count; i += 4)
      for (std::int64_t j = 0; j < whole; j += V::lanes) {
        V first = better(row(i, j), row(i + 1, j)), second = better(row(i + 2, j), row(i + 3, j));
        better(V::load(best + j), better(first, second)).store(best + j);
      }
    for (; i < count; ++i)
      for (std::int64_t j = 0; j < whole; j += V::lanes) better(V::load(best + j), row(i, j)).store(best + j);
    for (std::int64_t j = whole; j < columns; ++j)
      for (i = 0; i < count; ++i) best[j] = better(best[j], number(rows[i * stride + j]));
  }
  [[gnu::noinline]] void take_line(const A* x, std::int64_t count, std::int64_t times, std::int64_t stride) {
    A* best = best_ + at_;
    for (; times > 0; --times, x += stride)
      for_each_column(
          x, count, [=](std::int64_t j) { return V::load(best + j); }, [=](std::int64_t j, V v) { v.store(best + j); });
  }
  void reduce_line(std::int64_t at, const A* x, std::int64_t count, std::int64_t) { best_[at] = of_line(x, count); }
  void fold(std::int64_t to, std::int64_t width, std::int64_t fold) {
    A* best = best_ + at_;
    for (std::int64_t half = fold / 2 * width; half >= width; half /= 2)
      for (std::int64_t j = 0; j < half; ++j) best[j] = better(best[j], best[j + half]);
    if (fold > 1) std::copy_n(best, width, best_ + to);
  }
  void join(const ExtremeColumns& later, std::int64_t width) {
    for (std::int64_t j = 0; j < width; ++j) best_[j] = better(best_[j], later.best_[j]);
  }
  void finish(std::int64_t first, std::int64_t width) { write_results(*out_, first, best_, width); }

  [[gnu::noinline]] static A of_line(const A* x, std::int64_t count) {
    constexpr std::int64_t parts = line_columns / V::lanes;
    hn::Vec<typename V::Tag> best[parts];
    for_each_column(
        x, count, [](std::int64_t) { return V::repeat(worst()); },
        [&](std::int64_t j, V v) { best[j / V::lanes] = v.raw; });
    for (std::int64_t half = parts / 2; half >= 1; half /= 2)
      for (std::int64_t p = 0; p < half; ++p) best[p] = better(V(best[p]), V(best[p + half])).raw;
    V all = best[0];
    bool has_nan = !hn::AllTrue(typename V::Tag(), all == all);
    return has_nan ? join_lanes(all, [](auto a, auto b) { return better_of(a, b); })
                   : join_lanes(all, [](auto a, auto b) { return (largest ? a > b : a < b) ? a : b; });
  }

 private:
  using V = Vector<A>;
  // Numbers, or vectors of the compiler's own.
  template <class N>
  static N better_of(N a, N b) {
    return ((largest ? a > b : a < b) | (a != a)) ? a : b;
  }
  // Loads, joins with the line's numbers and stores the columns of a line.
  template <class Load, class Store>
  static void for_each_column(const A* x, std::int64_t count, Load load, Store store) {
    for (std::int64_t j = 0; j < line_columns; j += V::lanes) {
      V first = load(j);
      if constexpr (!std::is_integral_v<A>) {
        // Without NaN; the sum is one if there is one, or if infinities cancel.
        V sum = first;
        V best = joined_rows(
            x + j, count - j, first, [&](V a, V b) { return beyond(a, b); }, [&](V v) { sum = sum + v; });
        if (hn::AllTrue(typename V::Tag(), sum == sum)) [[likely]] {
          store(j, best);
          continue;
        }
      }
      store(j, joined_rows(
                   x + j, count - j, first, [](V a, V b) { return better(a, b); }, [](V) {}));
    }
  }
  template <class Join, class See>
  static V joined_rows(const A* x, std::int64_t count, V best, Join join, See see) {
    auto row = [&](std::int64_t k) {
      V v = number(V::load(x + k * line_columns));
      see(v);
      return v;
    };
    for (; count >= 3 * line_columns + V::lanes; count -= 4 * line_columns, x += 4 * line_columns)
      best = join(best, join(join(row(0), row(1)), join(row(2), row(3))));
    for (; count >= V::lanes; count -= line_columns, x += line_columns) best = join(best, row(0));
    if (count > 0) {
      A last[V::lanes];
      V::repeat(worst()).store(last);
      number(V::load(x, count)).store(last, count);
      V v = V::load(last);
      see(v);
      best = join(best, v);
    }
    return best;
  }
  static Vector<A> beyond(Vector<A> a, Vector<A> b) { return largest ? hn::Max(a.raw, b.raw) : hn::Min(a.raw, b.raw); }
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
  std::int64_t at_ = 0;
  A best_[most_columns];
};

}  // namespace reel::detail::inline REEL_TARGET
