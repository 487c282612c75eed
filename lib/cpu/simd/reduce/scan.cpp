#include <algorithm>
#include <cstdint>
#include <limits>

#include "../../../kernels/formulas/binary.h"
#include "../elementwise/elementwise.h"
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

// A scan of elements of E, which is f32 also for halves: the states of some columns.
template <class Law, class E, int inputs>
class Scan {
  static constexpr bool is_integral = std::is_integral_v<E>;
  using W = std::conditional_t<is_integral, std::uint64_t, double>;
  using V = Vector<double>;
  using Tile = ScanPlan::Tile;
  using Operands = const E* const (&)[inputs];
  using WideOperands = const W* const (&)[inputs];

 public:
  explicit Scan(std::int64_t columns) { std::fill_n(states_, columns, static_cast<W>(Law::initial)); }

  // `joins_four`: elements may be joined with each other first.
  template <class... Views>
  static void run(const View& out, int axis, bool backwards, bool joins_four, const View& view, const Views&... views) {
    if (out.numel == 0) return;
    ScanPlan plan(view, axis);
    const ScanOperand<E, Writer> to(out, axis, backwards);
    const ScanOperand<E, Reader> from[] = {{view, axis, backwards}, {views, axis, backwards}...};
    plan.for_each_tile([&](std::int64_t columns) {
      return [&, scan = Scan(columns)](const Tile& at) mutable {
        TileSpace<E> space[inputs], results;
        const E* x[inputs];
        if constexpr (inputs == 1) {
          x[0] = from[0].read(plan, at, space[0]);
        } else {
          for (int k = 0; k < inputs; ++k) from[k].copy(at, space[k]), x[k] = space[k];
          // The term before the first element counts for nothing, also if its factor is NaN.
          for (std::int64_t s = 0; at.first == 0 && s < at.slices; ++s)
            std::fill_n(space[0] + s * at.count * at.width, at.width, E(0));
        }
        E* y = to.place(plan, at, results);
        plan.has_rows() ? scan.take_rows(x, y, at, joins_four) : scan.take_slices(x, y, at);
        to.write(at, y, results);
      };
    });
  }

 private:
  template <class N, class Load>
  HWY_INLINE static N next(N state, Load load) {
    if constexpr (inputs == 1)
      return Law()(state, load(0));
    else
      return Law()(state, load(0), load(1));
  }

  void take_rows(Operands x, E* y, const Tile& at, bool joins_four) {
    const W* rows[inputs];
    if constexpr (std::is_same_v<E, float>) {
      W wide[inputs][ScanPlan::most_elements];
      for (int k = 0; k < inputs; ++k) {
        for (std::int64_t i = 0; i < at.size(); ++i) wide[k][i] = x[k][i];
        rows[k] = wide[k];
      }
      take_wide_rows(rows, wide[0], at, joins_four);
      for (std::int64_t i = 0; i < at.size(); ++i) y[i] = static_cast<E>(wide[0][i]);
    } else {
      for (int k = 0; k < inputs; ++k) rows[k] = reinterpret_cast<const W*>(x[k]);
      take_wide_rows(rows, reinterpret_cast<W*>(y), at, joins_four);
    }
  }
  void take_wide_rows(WideOperands x, W* y, const Tile& at, bool joins_four) {
    std::int64_t s = 0;
    if constexpr (inputs == 1 && Law::is_vectorised)
      for (; joins_four && s < at.slices; ++s)
        take_by_fours(x[0] + s * at.count, y + s * at.count, at.count, states_[s]);
    // Several rows at once do not wait for each other's states.
    for (; s + 4 <= at.slices; s += 4) take_some_rows<4>(x, y, s, at.count);
    for (; s < at.slices; ++s) take_some_rows<1>(x, y, s, at.count);
  }
  template <int rows>
  void take_some_rows(WideOperands x, W* y, std::int64_t row, std::int64_t count) {
    W state[rows];
    for (int r = 0; r < rows; ++r) state[r] = states_[row + r];
    for (std::int64_t i = row * count; i < (row + 1) * count; ++i)
      for (int r = 0; r < rows; ++r)
        y[i + r * count] = state[r] = next(state[r], [&](int k) { return x[k][i + r * count]; });
    for (int r = 0; r < rows; ++r) states_[row + r] = state[r];
  }
  static void take_by_fours(const W* x, W* y, std::int64_t count, W& so_far) {
    constexpr Law law;
    W state = so_far;
    std::int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
      W one = x[i], two = law(one, x[i + 1]), three = law(two, x[i + 2]), four = law(two, law(x[i + 2], x[i + 3]));
      y[i] = law(state, one);
      y[i + 1] = law(state, two);
      y[i + 2] = law(state, three);
      y[i + 3] = state = law(state, four);
    }
    for (; i < count; ++i) y[i] = state = law(state, x[i]);
    so_far = state;
  }

  void take_slices(Operands x, E* y, const Tile& at) {
    W* states = states_;
    for (std::int64_t first = 0; first < at.size(); first += at.count * at.width, states += at.width)
      if constexpr (!is_integral && Law::is_vectorised && V::lanes > 1) {
        // Others overwrite what the last vector has behind its row.
        std::int64_t whole = at.width / V::lanes * V::lanes;
        if (whole < at.width) take_columns(x, y, first, whole, states, at);
        for (std::int64_t j = 0; j < whole; j += V::lanes) take_columns(x, y, first, j, states, at);
      } else {
        for (std::int64_t i = 0, k = first; i < at.count; ++i)
          for (std::int64_t j = 0; j < at.width; ++j, ++k) {
            states[j] = next(states[j], [&](int input) { return static_cast<W>(x[input][k]); });
            y[k] = static_cast<E>(states[j]);
          }
      }
  }
  static void take_columns(Operands x, E* y, std::int64_t first, std::int64_t column, W* states, const Tile& at) {
    V state = V::load(states + column);
    for (std::int64_t i = 0, k = first + column; i < at.count; ++i, k += at.width) {
      state = next(state, [&](int input) { return load(x[input] + k); });
      store(state, y + k);
    }
    if (at.slices == 1) state.store(states + column);
  }
  static V load(const double* from) { return V::load(from); }
  static V load(const float* from) { return hn::PromoteTo(V::Tag(), hn::LoadU(HalfTag(), from)); }
  static void store(V v, double* to) { v.store(to); }
  static void store(V v, float* to) { hn::StoreU(hn::DemoteTo(HalfTag(), v.raw), HalfTag(), to); }

  W states_[ScanPlan::most_elements + V::lanes];
};

template <class Law>
void scan_numbers(const View& out, const View& x, int axis, bool backwards, bool joins_four) {
  if (x.dims[axis] == 1) return copy_elements(out, x);
  if (!is_floating(x.dtype)) return Scan<Law, std::int64_t, 1>::run(out, axis, backwards, true, x);
  if (x.dtype == DType::f64) return Scan<Law, double, 1>::run(out, axis, backwards, joins_four, x);
  Scan<Law, float, 1>::run(out, axis, backwards, joins_four, x);
}

void cumsum(const View& out, const View& x, int axis, bool backwards) {
  scan_numbers<RunningSum>(out, x, axis, backwards, true);
}

// Some factors of f64 can overflow where their product with the state does not; four of another dtype cannot.
void cumprod(const View& out, const View& x, int axis, bool backwards) {
  scan_numbers<RunningProduct>(out, x, axis, backwards, x.dtype != DType::f64);
}

void logcumsumexp(const View& out, const View& x, int axis) {
  if (x.dims[axis] == 1) return copy_elements(out, x);
  if (x.dtype == DType::f64) return Scan<RunningLogSum, double, 1>::run(out, axis, false, false, x);
  Scan<RunningLogSum, float, 1>::run(out, axis, false, false, x);
}

void recurrence(const View& out, const View& a, const View& b, int axis, bool backwards) {
  if (out.dtype == DType::f64) return Scan<RunningLine, double, 2>::run(out, axis, backwards, false, a, b);
  Scan<RunningLine, float, 2>::run(out, axis, backwards, false, a, b);
}

}  // namespace

void fill_scan(KernelTable& table) {
  table.cumsum = cumsum;
  table.cumprod = cumprod;
  table.logcumsumexp = logcumsumexp;
  table.recurrence = recurrence;
}

}  // namespace reel::detail::inline REEL_TARGET
