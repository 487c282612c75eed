#include <limits>

#include "../instruction_set.h"
#include "../vector/vector.h"
#include "extreme_columns.h"
#include "reduction.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// The index of the largest or smallest element, counted in row-major order over the reduced axes: the first of equal
// ones, and the first NaN if there is one.
template <class A, bool largest>
struct ArgExtreme {
  // An integer as wide as the elements, so that vectors of both have equally many lanes.
  using Row = std::conditional_t<sizeof(A) == 4, std::int32_t, std::int64_t>;
  static constexpr std::int64_t most_rows = 1 << 30;

  explicit ArgExtreme(const View& out) : out_(out) {}

  void start(std::int64_t at, std::int64_t, std::int64_t width, std::int64_t) {
    at_ = at;
    width_ = width;
    started_ = false;
  }
  void take(const A* rows, std::int64_t stride, std::int64_t count, std::int64_t columns, std::int64_t position) {
    std::int64_t fold = columns / width_;
    if (!started_) {  // the first row initialises all columns
      std::copy_n(rows, columns, best_ + at_);
      for (std::int64_t g = 0; g < fold; ++g) std::fill_n(places_ + at_ + g * width_, width_, position + g);
      started_ = true;
    }
    for (std::int64_t i = 0; i < count; i += most_rows)
      take_rows(rows + i * stride, stride, std::min(most_rows, count - i), columns, position + i * fold);
  }
  void reduce_line(std::int64_t at, const A* x, std::int64_t count, std::int64_t position) {
    best_[at] = ExtremeColumns<A, largest>::of_line(x, count);
    places_[at] = position + first_of(x, count, best_[at]);
  }
  void fold(std::int64_t to, std::int64_t width, std::int64_t fold) {
    for (std::int64_t half = fold / 2 * width; half >= width; half /= 2)
      for (std::int64_t j = at_; j < at_ + half; ++j) join_column(j, best_[j + half], places_[j + half]);
    if (fold == 1) return;
    std::copy_n(best_ + at_, width, best_ + to);
    std::copy_n(places_ + at_, width, places_ + to);
  }
  void join(const ArgExtreme& later, std::int64_t width) {
    for (std::int64_t j = 0; j < width; ++j) join_column(j, later.best_[j], later.places_[j]);
  }
  void finish(std::int64_t first, std::int64_t width) { write_results(out_, first, places_, width); }

 private:
  static bool beats(A a, A b) { return (largest ? a > b : a < b) || (a != a && b == b); }
  static auto beats(Vector<A> a, Vector<A> b) {
    auto beyond = largest ? a > b : a < b;
    if constexpr (std::is_integral_v<A>)
      return beyond;
    else
      return hn::Or(beyond, hn::AndNot(a == a, b == b));
  }

  // The place of the first element that is equal to `value`, or NaN if that is.
  static std::int64_t first_of(const A* x, std::int64_t count, A value) {
    using V = Vector<A>;
    const typename V::Tag tag;
    V wanted = V::repeat(value);
    for (std::int64_t i = 0;; i += V::lanes) {
      V here = i + V::lanes <= count ? V::load(x + i) : V::load(x + i, count - i);
      auto found = here == wanted;
      if constexpr (!std::is_integral_v<A>)
        if (value != value) found = hn::Not(here == here);
      if (std::int64_t lane = hn::FindFirstTrue(tag, found); lane >= 0) return i + lane;
    }
  }

  void join_column(std::int64_t j, A value, std::int64_t place) {
    bool is_better = beats(value, best_[j]), is_worse = beats(best_[j], value);
    bool equal = !is_better & !is_worse;
    if (!is_better && !(equal && place < places_[j])) return;
    best_[j] = value;
    places_[j] = place;
  }

  [[gnu::noinline]] void take_rows(const A* rows, std::int64_t stride, std::int64_t count, std::int64_t columns,
                                   std::int64_t position) {
    using V = Vector<A>;
    using Rows = Vector<Row>;
    Row found[most_columns];
    A* best_values = best_ + at_;
    std::fill_n(found, columns, Row(-1));
    std::int64_t whole = columns / V::lanes * V::lanes;
    // Eight rows at a time, so that the best values so far are not loaded and stored for each.
    for (std::int64_t i = 0; i < count; i += 8) {
      std::int64_t end = std::min(i + 8, count);
      for (std::int64_t j = 0; j < whole; j += V::lanes) {
        V best = V::load(best_values + j);
        Rows at = Rows::load(found + j);
        for (std::int64_t k = i; k < end; ++k) {
          V value = V::load(rows + k * stride + j);
          auto wins = beats(value, best);
          best = select(wins, value, best);
          at = select(hn::RebindMask(typename Rows::Tag(), wins), Rows::repeat(static_cast<Row>(k)), at);
        }
        best.store(best_values + j);
        at.store(found + j);
      }
    }
    for (std::int64_t j = whole; j < columns; ++j)
      for (std::int64_t i = 0; i < count; ++i)
        if (beats(rows[i * stride + j], best_values[j])) {
          best_values[j] = rows[i * stride + j];
          found[j] = static_cast<Row>(i);
        }
    std::int64_t fold = columns / width_;
    for (std::int64_t g = 0; g < fold; ++g) {
      std::int64_t* __restrict places = places_ + at_ + g * width_;
      const Row* from = found + g * width_;
      for (std::int64_t j = 0; j < width_; ++j)
        places[j] = from[j] < 0 ? places[j] : position + static_cast<std::int64_t>(from[j]) * fold + g;
    }
  }

  const View& out_;
  std::int64_t at_ = 0, width_ = 0;
  bool started_ = false;
  A best_[most_columns];
  std::int64_t places_[most_columns];
};

template <class A, bool largest>
void reduce(const View& out, const View& x) {
  in_memory_order(out, x, [](const View& results, const View& sorted) {
    ReductionPlan(results, sorted).run<ArgExtreme<A, largest>>(Reader<A>(sorted), results);
  });
}

template <bool largest>
void arg_extreme(const View& out, const View& x);

// The index counts in row-major order, which several axes may not have in memory.
template <bool largest>
void arg_extreme_of_copy(const View& out, const View& x) {
  CachedSpace<std::byte> bytes(x.numel * static_cast<std::int64_t>(size_of(x.dtype)));
  std::int64_t strides[8], stride = 1;
  for (int axis = x.rank; axis-- > 0; stride *= x.dims[axis]) strides[axis] = stride;
  View copy = x;
  copy.data = bytes.get();
  copy.strides = strides;
  copy.contiguous = true;
  copy_elements(copy, x);
  arg_extreme<largest>(out, copy);
}

template <bool largest>
void arg_extreme(const View& out, const View& x) {
  if (x.numel == 0) return;  // no results then: the op refuses an empty reduction
  if (x.numel == out.numel) return fill_results(out, 0);
  int reduced = 0;
  for (int axis = 0; axis < x.rank; ++axis) reduced += out.dims[axis] != x.dims[axis];
  if (reduced > 1 && !MemoryOrder(x.dims, x.strides, x.rank).is_logical) return arg_extreme_of_copy<largest>(out, x);
  if (!is_floating(x.dtype)) return reduce<std::int64_t, largest>(out, x);
  x.dtype == DType::f64 ? reduce<double, largest>(out, x) : reduce<float, largest>(out, x);
}

}  // namespace

void fill_argmax(KernelTable& table) {
  table.reduce[static_cast<int>(Reduction::argmax)] = arg_extreme<true>;
  table.reduce[static_cast<int>(Reduction::argmin)] = arg_extreme<false>;
}

}  // namespace reel::detail::inline REEL_TARGET
