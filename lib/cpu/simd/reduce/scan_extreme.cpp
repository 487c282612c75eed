#include "scan_extreme.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "../vector/vector.h"
#include "scan_lines.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// The largest or smallest element of some columns so far and its index, the last of equal ones; NaN wins and stays.
template <class W, bool largest>
class RunningExtreme {
  using V = Vector<W>;
  // An integer as wide as the elements, so that vectors of both have equally many lanes.
  using Row = std::conditional_t<sizeof(W) == 4, std::int32_t, std::int64_t>;
  using Rows = Vector<Row>;
  using Tile = ScanPlan::Tile;

 public:
  explicit RunningExtreme(std::int64_t columns) {
    std::fill_n(best_, columns, worst());
    std::fill_n(latest_, columns, 0);
  }
  static void run(const View& values, const View& indices, const View& x, int axis) {
    ScanPlan plan(x, axis);
    const ScanOperand<W, Reader> from(x, axis, false);
    const ScanOperand<W, Writer> to_values(values, axis, false);
    const ScanOperand<std::int64_t, Writer> to_indices(indices, axis, false);
    plan.for_each_tile([&](std::int64_t columns) {
      return [&, extreme = RunningExtreme(columns)](const Tile& at) mutable {
        TileSpace<W> space, results;
        TileSpace<std::int64_t> places;
        const W* in = from.read(plan, at, space);
        W* best = to_values.place(plan, at, results);
        std::int64_t* found = to_indices.place(plan, at, places);
        plan.has_rows() ? extreme.take_rows(in, best, found, at) : extreme.take_slices(in, best, found, at);
        to_values.write(at, best, results);
        to_indices.write(at, found, places);
      };
    });
  }

 private:
  static constexpr W worst() {
    using Limits = std::numeric_limits<W>;
    if constexpr (Limits::has_infinity) return largest ? -Limits::infinity() : Limits::infinity();
    return largest ? Limits::min() : Limits::max();
  }
  static auto wins(V x, V best) {
    if constexpr (std::is_integral_v<W>)
      return hn::Or(largest ? x > best : x < best, x == best);
    else
      return hn::Or(largest ? x >= best : x <= best, hn::IsNaN(x.raw));
  }

  void take_rows(const W* x, W* values, std::int64_t* found, const Tile& at) {
    for (std::int64_t s = 0; s < at.slices; ++s, x += at.count, values += at.count, found += at.count) {
      std::int64_t i = 0;
      for (; i + V::lanes <= at.count; i += V::lanes) {
        if (hn::AllFalse(typename V::Tag(), wins(V::load(x + i), V::repeat(best_[s])))) {
          V::repeat(best_[s]).store(values + i);
          std::fill_n(found + i, V::lanes, std::int64_t{latest_[s]});
        } else {
          take_line(x + i, values + i, found + i, 1, at.first + i, V::lanes, s);
        }
      }
      take_line(x + i, values + i, found + i, 1, at.first + i, at.count - i, s);
    }
  }
  void take_line(const W* x, W* values, std::int64_t* found, std::int64_t stride, std::int64_t first,
                 std::int64_t count, std::int64_t state) {
    W best = best_[state];
    std::int64_t latest = latest_[state];
    for (std::int64_t i = first; i < first + count; ++i, x += stride, values += stride, found += stride) {
      bool loses = largest ? *x < best : *x > best;  // the only test of most elements, which are numbers
      if (!loses && (best == best || *x != *x)) {
        best = *x;
        latest = i;
      }
      *values = best;
      *found = latest;
    }
    best_[state] = best;
    latest_[state] = static_cast<Row>(latest);
  }

  void take_slices(const W* x, W* values, std::int64_t* found, const Tile& at) {
    Row rows[ScanPlan::most_elements + V::lanes];
    bool is_narrow = 4 * at.width <= V::lanes;
    std::int64_t state = 0, first = 0;
    for (; first < at.size(); first += at.count * at.width, state += at.width) {
      for (std::int64_t j = 0; is_narrow && j < at.width; ++j) {
        std::int64_t k = first + j;
        take_line(x + k, values + k, found + k, at.width, at.first, at.count, state + j);
      }
      if (is_narrow) continue;
      // Others overwrite what the last vector has behind its row.
      std::int64_t whole = at.width / V::lanes * V::lanes;
      if (whole < at.width) take_columns(x, values, rows, first + whole, state + whole, at);
      for (std::int64_t j = 0; j < whole; j += V::lanes) take_columns(x, values, rows, first + j, state + j, at);
    }
    if (!is_narrow) std::copy_n(rows, at.size(), found);
  }
  void take_columns(const W* x, W* values, Row* rows, std::int64_t k, std::int64_t state, const Tile& at) {
    V best = V::load(best_ + state);
    Rows latest = Rows::load(latest_ + state);
    for (std::int64_t i = at.first; i < at.first + at.count; ++i, k += at.width) {
      V here = V::load(x + k);
      auto better = wins(here, best);
      best = select(better, here, best);
      latest = select(hn::RebindMask(typename Rows::Tag(), better), Rows::repeat(static_cast<Row>(i)), latest);
      best.store(values + k);
      latest.store(rows + k);
    }
    if (at.slices > 1) return;
    best.store(best_ + state);
    latest.store(latest_ + state);
  }

  W best_[ScanPlan::most_elements + V::lanes];
  Row latest_[ScanPlan::most_elements + V::lanes];
};

}  // namespace

void running_extreme(const View& values, const View& indices, const View& x, int axis, bool largest) {
  if (x.numel == 0) return;
  auto run = [&]<class W>(std::type_identity<W>) {
    (largest ? RunningExtreme<W, true>::run : RunningExtreme<W, false>::run)(values, indices, x, axis);
  };
  if (!is_floating(x.dtype)) return run(std::type_identity<std::int64_t>());
  // Indices are as wide as the elements.
  bool is_wide = x.dtype == DType::f64 || x.dims[axis] > std::numeric_limits<std::int32_t>::max();
  is_wide ? run(std::type_identity<double>()) : run(std::type_identity<float>());
}

}  // namespace reel::detail::inline REEL_TARGET
