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
  static constexpr std::int64_t most_lines = ScanPlan::most_lines, most_elements = ScanPlan::most_elements;

 public:
  static void run(const View& values, const View& indices, const View& x, int axis) {
    ScanPlan plan(x, axis);
    Reader<W> reader(x);
    Writer<W> value_writer(values);
    Writer<std::int64_t> index_writer(indices);
    Lines from(x, axis, false), value_lines(values, axis, false), index_lines(indices, axis, false);
    plan.for_each_group([&](std::int64_t line, std::int64_t lines) {
      W tile[most_elements + V::lanes], best[most_lines];
      std::int64_t found[most_elements], latest[most_lines] = {};
      std::fill_n(best, lines, worst());
      plan.for_each_tile(line, lines, [&](const ScanPlan::Tile& at) {
        plan.read(reader, from, at, tile);
        if (plan.has_rows()) {
          for (std::int64_t j = 0, k = 0; j < lines; ++j, k += at.count)
            scan_row(tile + k, found + k, at.first, at.count, best[j], latest[j]);
        } else {
          std::fill_n(tile + lines * at.count, V::lanes, W(0));  // vectors are read up to their ends
          scan_columns(tile, found, at, best, latest);
        }
        plan.write(value_writer, value_lines, at, tile);
        plan.write(index_writer, index_lines, at, found);
      });
    });
  }

 private:
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

  static void scan_row(W* x, std::int64_t* found, std::int64_t first, std::int64_t count, W& best_so_far,
                       std::int64_t& latest_so_far) {
    W best = best_so_far;
    std::int64_t latest = latest_so_far, i = 0;
    auto take = [&](std::int64_t end) {
      for (; i < end; ++i) {
        if (wins(x[i], best)) {
          best = x[i];
          latest = first + i;
        }
        x[i] = best;
        found[i] = latest;
      }
    };
    while (i + V::lanes <= count) {
      if (hn::AllFalse(typename V::Tag(), wins(V::load(x + i), V::repeat(best)))) {
        V::repeat(best).store(x + i);
        std::fill_n(found + i, V::lanes, latest);
        i += V::lanes;
      } else {
        take(i + V::lanes);
      }
    }
    take(count);
    best_so_far = best;
    latest_so_far = latest;
  }

  static void scan_columns(W* x, std::int64_t* found, const ScanPlan::Tile& at, W* best_so_far, std::int64_t* latest) {
    Row won[most_elements];
    for (std::int64_t j = 0; j < at.lines; j += V::lanes) {
      std::int64_t used = std::min(V::lanes, at.lines - j);
      V best = V::load(best_so_far + j, used);
      Rows row = Rows::repeat(-1);
      auto each_row = [&](auto store) {
        for (std::int64_t i = 0; i < at.count; ++i) {
          V here = V::load(x + i * at.lines + j);
          auto better = wins(here, best);
          best = select(better, here, best);
          row = select(hn::RebindMask(typename Rows::Tag(), better), Rows::repeat(static_cast<Row>(i)), row);
          store(best, x + i * at.lines + j);
          store(row, won + i * at.lines + j);
        }
      };
      if (used == V::lanes)
        each_row([](auto v, auto* to) { v.store(to); });
      else
        each_row([=](auto v, auto* to) { v.store(to, used); });
      best.store(best_so_far + j, used);
    }
    for (std::int64_t i = 0, k = 0; i < at.count; ++i)
      for (std::int64_t j = 0; j < at.lines; ++j, ++k) found[k] = won[k] < 0 ? latest[j] : at.first + won[k];
    std::copy_n(found + (at.count - 1) * at.lines, at.lines, latest);
  }
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
