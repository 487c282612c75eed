#include <limits>

#include "instruction_set.h"
#include "reduction.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

// The place of the largest or smallest element, counted in row-major order over the reduced axes: the first of equals,
// and the first NaN if there is one.
template <class A, bool largest>
struct ArgExtreme {
  // As wide as the elements, so that vectors of both have the same lanes.
  using Row = std::conditional_t<sizeof(A) == 4, std::int32_t, std::int64_t>;
  static constexpr std::int64_t most_rows = 1 << 30;

  explicit ArgExtreme(const View& out) : out_(out) {}

  void start(std::int64_t, std::int64_t width, std::int64_t) {
    width_ = width;
    started_ = false;
  }
  void take(const A* rows, std::int64_t stride, std::int64_t count, std::int64_t columns, std::int64_t position) {
    std::int64_t fold = columns / width_;
    if (!started_) {  // all columns are there from the first row on
      std::copy_n(rows, columns, best_);
      for (std::int64_t g = 0; g < fold; ++g) std::fill_n(places_ + g * width_, width_, position + g);
      started_ = true;
    }
    for (std::int64_t i = 0; i < count; i += most_rows)
      take_rows(rows + i * stride, stride, std::min(most_rows, count - i), columns, position + i * fold);
  }
  void fold(std::int64_t width, std::int64_t fold) {
    for (std::int64_t half = fold / 2 * width; half >= width; half /= 2)
      for (std::int64_t j = 0; j < half; ++j) join_column(j, best_[j + half], places_[j + half]);
  }
  void join(const ArgExtreme& later, std::int64_t width) {
    for (std::int64_t j = 0; j < width; ++j) join_column(j, later.best_[j], later.places_[j]);
  }
  void finish(std::int64_t first, std::int64_t width) { write_results(out_, first, places_, width); }

 private:
  static bool beats(A a, A b) { return (largest ? a > b : a < b) | ((a != a) & (b == b)); }
  static void keep(A& best, Row& at, A value, Row row) {
    bool wins = beats(value, best);
    best = wins ? value : best;
    at = wins ? row : at;
  }
  void join_column(std::int64_t j, A value, std::int64_t place) {
    bool equal = !beats(value, best_[j]) & !beats(best_[j], value);
    if (!beats(value, best_[j]) && !(equal && place < places_[j])) return;
    best_[j] = value;
    places_[j] = place;
  }

  [[gnu::noinline]] void take_rows(const A* __restrict rows, std::int64_t stride, std::int64_t count,
                                   std::int64_t columns, std::int64_t position) {
    Row found[most_columns];
    A* __restrict best = best_;
    std::fill_n(found, columns, Row(-1));
    std::int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
      const A *r0 = rows + i * stride, *r1 = r0 + stride, *r2 = r1 + stride, *r3 = r2 + stride;
      auto row = static_cast<Row>(i);
      for (std::int64_t j = 0; j < columns; ++j) {
        keep(best[j], found[j], r0[j], row);
        keep(best[j], found[j], r1[j], row + 1);
        keep(best[j], found[j], r2[j], row + 2);
        keep(best[j], found[j], r3[j], row + 3);
      }
    }
    for (; i < count; ++i)
      for (std::int64_t j = 0; j < columns; ++j) keep(best[j], found[j], rows[i * stride + j], static_cast<Row>(i));
    std::int64_t fold = columns / width_;
    for (std::int64_t g = 0; g < fold; ++g) {
      std::int64_t* __restrict places = places_ + g * width_;
      const Row* from = found + g * width_;
      for (std::int64_t j = 0; j < width_; ++j)
        places[j] = from[j] < 0 ? places[j] : position + static_cast<std::int64_t>(from[j]) * fold + g;
    }
  }

  const View& out_;
  std::int64_t width_ = 0;
  bool started_ = false;
  A best_[most_columns];
  std::int64_t places_[most_columns];
};

template <bool largest>
void arg_extreme(const View& out, const View& x) {
  if (x.numel == 0) return;  // no results then: the op refuses places in nothing
  ReductionPlan plan(out, x);
  if (!is_floating(x.dtype)) return plan.run<ArgExtreme<std::int64_t, largest>>(Reader<std::int64_t>(x), out);
  if (x.dtype == DType::f64) return plan.run<ArgExtreme<double, largest>>(Reader<double>(x), out);
  plan.run<ArgExtreme<float, largest>>(Reader<float>(x), out);
}

}  // namespace

void fill_argmax(KernelTable& table) {
  table.reduce[static_cast<int>(Reduction::argmax)] = arg_extreme<true>;
  table.reduce[static_cast<int>(Reduction::argmin)] = arg_extreme<false>;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
