#include "running_extreme.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "../vector/vector.h"
#include "scan_lines.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// The largest or smallest element so far and its index, the last of equal ones; NaN wins and stays.
template <class W, bool largest>
class RunningExtreme {
  using V = Vector<W>;
  // An integer as wide as the elements, so that vectors of both have equally many lanes. It counts the rows of a tile.
  using Row = std::conditional_t<sizeof(W) == 4, std::int32_t, std::int64_t>;
  using Rows = Vector<Row>;

 public:
  static void run(const View& values, const View& indices, const View& x, int axis) {
    ScanPlan plan(x, axis);
    const ScanOperand<W, Reader> from(x, axis, false);
    const ScanOperand<W, Writer> to_values(values, axis, false);
    const ScanOperand<std::int64_t, Writer> to_indices(indices, axis, false);
    plan.for_each_tile([&] {
      return [&, group = RunningExtreme()](const ScanPlan::Tile& at) mutable {
        const W* in = plan.has_rows() ? from.in_place(plan, at) : nullptr;
        if (!in) {
          from.read(at, group.space_);
          std::fill_n(group.space_ + at.size(), V::lanes, W(0));
          in = group.space_;
        }
        W* best = plan.has_rows() ? to_values.in_place(plan, at) : nullptr;
        std::int64_t* found = to_indices.in_place(plan, at);
        bool writes_values = !best, writes_indices = !found || !plan.has_rows();
        if (writes_values) best = group.results_;
        if (writes_indices) found = group.found_;
        for (std::int64_t first = 0; first < at.size(); first += at.count * at.width) {
          if (at.slices > 1) group.start(at.width);
          if (plan.has_rows())
            group.scan_row(in + first, best + first, found + first, at);
          else
            group.scan_columns(in + first, best + first, found + first, at);
        }
        if (writes_values) to_values.write(at, best);
        if (writes_indices) to_indices.write(at, found);
      };
    });
  }

 private:
  RunningExtreme() { start(most_columns); }
  void start(std::int64_t columns) {
    std::fill_n(best_, columns, worst());
    std::fill_n(latest_, columns, 0);
  }
  static constexpr W worst() {
    using Limits = std::numeric_limits<W>;
    if constexpr (Limits::has_infinity) return largest ? -Limits::infinity() : Limits::infinity();
    return largest ? Limits::min() : Limits::max();
  }
  static bool wins(W x, W best) { return (largest ? x >= best : x <= best) || x != x; }
  static auto wins(V x, V best) {
    if constexpr (std::is_integral_v<W>)
      return hn::Or(largest ? x > best : x < best, x == best);
    else
      return hn::Or(largest ? x >= best : x <= best, hn::IsNaN(x.raw));
  }

  void scan_row(const W* x, W* values, std::int64_t* found, const ScanPlan::Tile& at) {
    W best = best_[0];
    std::int64_t latest = latest_[0], i = 0;
    auto take = [&](std::int64_t end) {
      for (; i < end; ++i) {
        if (wins(x[i], best)) {
          best = x[i];
          latest = at.first + i;
        }
        values[i] = best;
        found[i] = latest;
      }
    };
    while (i + V::lanes <= at.count) {
      if (hn::AllFalse(typename V::Tag(), wins(V::load(x + i), V::repeat(best)))) {
        V::repeat(best).store(values + i);
        std::fill_n(found + i, V::lanes, latest);
        i += V::lanes;
      } else {
        take(i + V::lanes);
      }
    }
    take(at.count);
    best_[0] = best;
    latest_[0] = latest;
  }

  void scan_columns(const W* x, W* values, std::int64_t* found, const ScanPlan::Tile& at) {
    // What the last vector writes behind its rows, the others overwrite.
    std::int64_t whole = at.width / V::lanes * V::lanes;
    if (whole < at.width) scan_vectors(x, values, whole, at);
    for (std::int64_t j = 0; j < whole; j += V::lanes) scan_vectors(x, values, j, at);
    for (std::int64_t i = 0, k = 0; i < at.count; ++i)
      for (std::int64_t j = 0; j < at.width; ++j, ++k) found[k] = rows_[k] < 0 ? latest_[j] : at.first + rows_[k];
    std::copy_n(found + (at.count - 1) * at.width, at.width, latest_);
  }
  void scan_vectors(const W* x, W* values, std::int64_t column, const ScanPlan::Tile& at) {
    V best = V::load(best_ + column);
    Rows row = Rows::repeat(-1);
    for (std::int64_t i = 0, k = column; i < at.count; ++i, k += at.width) {
      V here = V::load(x + k);
      auto better = wins(here, best);
      best = select(better, here, best);
      row = select(hn::RebindMask(typename Rows::Tag(), better), Rows::repeat(static_cast<Row>(i)), row);
      best.store(values + k);
      row.store(rows_ + k);
    }
    best.store(best_ + column);
  }

  static constexpr std::int64_t most_columns = ScanPlan::most_columns + V::lanes,
                                most_elements = ScanPlan::most_elements + V::lanes;
  W space_[most_elements], results_[most_elements], best_[most_columns];
  Row rows_[most_elements];
  std::int64_t found_[ScanPlan::most_elements], latest_[most_columns];
};

}  // namespace

void running_extreme(const View& values, const View& indices, const View& x, int axis, bool largest) {
  if (x.numel == 0) return;
  auto run = [&]<class W>(std::type_identity<W>) {
    (largest ? RunningExtreme<W, true>::run : RunningExtreme<W, false>::run)(values, indices, x, axis);
  };
  if (!is_floating(x.dtype)) return run(std::type_identity<std::int64_t>());
  x.dtype == DType::f64 ? run(std::type_identity<double>()) : run(std::type_identity<float>());
}

}  // namespace reel::detail::inline REEL_TARGET
