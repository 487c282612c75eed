#include <algorithm>
#include <cstdint>
#include <limits>

#include "../../../kernels/formulas/binary.h"
#include "../instruction_set.h"
#include "../vector/vector.h"
#include "scan_lines.h"

// Cumulative sums and the like. Numbers are f64, or unsigned integers, which wrap around.

namespace reel::detail::inline REEL_TARGET {
namespace {

// A law has the state before the first element and state = law(state, element…). If its states are elements, and can be
// joined in any order, four elements are joined before they are joined with the state, which does not wait for each.

struct RunningSum {
  static constexpr double initial = 0;
  static constexpr bool is_vectorised = true;
  template <class V>
  V operator()(V sum, V x) const {
    return sum + x;
  }
};

struct RunningProduct {
  static constexpr double initial = 1;
  static constexpr bool is_vectorised = true;
  template <class V>
  V operator()(V product, V x) const {
    return product * x;
  }
};

struct RunningLogSum {
  static constexpr double initial = -std::numeric_limits<double>::infinity();
  static constexpr bool is_vectorised = false;
  double operator()(double sum, double x) const { return formulas::Logaddexp()(sum, x); }
};

struct RunningLine {
  static constexpr double initial = -0.0;
  static constexpr bool is_vectorised = true;
  template <class V>
  V operator()(V y, V factor, V term) const {
    return term + factor * y;
  }
};

// Vectors are read up to their ends, also behind the last element of a tile.
template <class W>
using TileSpace = W[ScanPlan::most_elements + Vector<double>::lanes];

template <class Law, class W, int inputs>
class Scan {
  using Element = std::conditional_t<std::is_same_v<W, double>, double, std::int64_t>;
  struct Operand {
    Reader<Element> reader;
    Lines lines;
  };

 public:
  // `joins_four`: elements may be joined with each other first.
  template <class... Views>
  static void run(const View& out, int axis, bool backwards, bool joins_four, const Views&... views) {
    if (out.numel == 0) return;
    ScanPlan plan(out, axis);
    Writer<Element> writer(out);
    Lines results(out, axis, backwards);
    const Operand from[] = {{Reader<Element>(views), Lines(views, axis, backwards)}...};
    plan.for_each_group([&](std::int64_t line, std::int64_t lines) {
      TileSpace<Element> space[inputs];
      W states[ScanPlan::most_lines], *tiles[inputs];
      std::fill_n(states, lines, static_cast<W>(Law::initial));
      plan.for_each_tile(line, lines, [&](const ScanPlan::Tile& at) {
        for (int k = 0; k < inputs; ++k) {
          plan.read(from[k].reader, from[k].lines, at, space[k]);
          std::fill_n(space[k] + at.lines * at.count, Vector<double>::lanes, Element(0));
          tiles[k] = reinterpret_cast<W*>(space[k]);
        }
        // The term before the first element counts for nothing, also if its factor is NaN.
        if (inputs == 2 && at.first == 0)
          for (std::int64_t j = 0; j < lines; ++j) tiles[0][plan.has_rows() ? j * at.count : j] = 0;
        if (!plan.has_rows())
          scan_columns(states, tiles, at.count, lines);
        else if (joins_four)
          scan_by_fours(states, tiles, at.count, lines);
        else
          scan_rows(states, tiles, at.count, lines);
        plan.write(writer, results, at, space[inputs - 1]);
      });
    });
  }

 private:
  template <class V, class Load>
  static V next(V state, W* const (&tiles)[inputs], std::int64_t i, Load load) {
    if constexpr (inputs == 1)
      return Law()(state, load(tiles[0] + i));
    else
      return Law()(state, load(tiles[0] + i), load(tiles[1] + i));
  }
  static W element(const W* from) { return *from; }

  static void scan_columns(W* states, W* const (&tiles)[inputs], std::int64_t count, std::int64_t lines) {
    W* to = tiles[inputs - 1];
    if constexpr (std::is_same_v<W, double> && Law::is_vectorised) {
      using V = Vector<double>;
      for (std::int64_t j = 0; j < lines; j += V::lanes) {
        std::int64_t used = std::min(V::lanes, lines - j);
        V state = V::load(states + j, used);
        auto each_row = [&](auto store) {
          for (std::int64_t i = 0; i < count; ++i) {
            state = next(state, tiles, i * lines + j, [](const W* from) { return V::load(from); });
            store(to + i * lines + j);
          }
        };
        if (used == V::lanes)
          each_row([&](W* at) { state.store(at); });
        else
          each_row([&](W* at) { state.store(at, used); });
        state.store(states + j, used);
      }
    } else {
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t j = 0; j < lines; ++j)
          to[i * lines + j] = states[j] = next(states[j], tiles, i * lines + j, element);
    }
  }

  // Several rows at once do not wait for each other's states.
  static void scan_rows(W* states, W* const (&tiles)[inputs], std::int64_t count, std::int64_t lines) {
    std::int64_t j = 0;
    for (; j + 4 <= lines; j += 4) scan_some_rows<4>(states + j, tiles, j * count, count);
    for (; j < lines; ++j) scan_some_rows<1>(states + j, tiles, j * count, count);
  }
  template <int rows>
  static void scan_some_rows(W* states, W* const (&tiles)[inputs], std::int64_t first, std::int64_t count) {
    W state[rows], *to = tiles[inputs - 1];
    std::copy_n(states, rows, state);
    for (std::int64_t i = first; i < first + count; ++i)
      for (int r = 0; r < rows; ++r) to[i + r * count] = state[r] = next(state[r], tiles, i + r * count, element);
    std::copy_n(state, rows, states);
  }

  static void scan_by_fours(W* states, W* const (&tiles)[inputs], std::int64_t count, std::int64_t lines) {
    if constexpr (inputs == 1 && Law::is_vectorised) {
      constexpr Law law;
      W* x = tiles[0];
      for (std::int64_t line = 0; line < lines; ++line, x += count) {
        W state = states[line];
        std::int64_t i = 0;
        for (; i + 4 <= count; i += 4) {
          W first = x[i], two = law(first, x[i + 1]), three = law(two, x[i + 2]),
            four = law(two, law(x[i + 2], x[i + 3]));
          x[i] = law(state, first);
          x[i + 1] = law(state, two);
          x[i + 2] = law(state, three);
          x[i + 3] = state = law(state, four);
        }
        for (; i < count; ++i) x[i] = state = law(state, x[i]);
        states[line] = state;
      }
    }
  }
};

template <class Law>
void scan_numbers(const View& out, const View& x, int axis, bool backwards, bool joins_four) {
  if (is_floating(x.dtype))
    Scan<Law, double, 1>::run(out, axis, backwards, joins_four, x);
  else
    Scan<Law, std::uint64_t, 1>::run(out, axis, backwards, true, x);
}

void cumsum(const View& out, const View& x, int axis, bool backwards) {
  scan_numbers<RunningSum>(out, x, axis, backwards, true);
}

// Some factors of f64 can overflow where their product with the state does not; four of another dtype cannot.
void cumprod(const View& out, const View& x, int axis, bool backwards) {
  scan_numbers<RunningProduct>(out, x, axis, backwards, x.dtype != DType::f64);
}

void logcumsumexp(const View& out, const View& x, int axis) {
  Scan<RunningLogSum, double, 1>::run(out, axis, false, false, x);
}

void recurrence(const View& out, const View& a, const View& b, int axis, bool backwards) {
  Scan<RunningLine, double, 2>::run(out, axis, backwards, false, a, b);
}

}  // namespace

void fill_scan(KernelTable& table) {
  table.cumsum = cumsum;
  table.cumprod = cumprod;
  table.logcumsumexp = logcumsumexp;
  table.recurrence = recurrence;
}

}  // namespace reel::detail::inline REEL_TARGET
