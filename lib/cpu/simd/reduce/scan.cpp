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

// A scan of elements of E, which is f32 also for halves.
template <class Law, class E, int inputs>
class Scan {
  static constexpr bool is_integral = std::is_integral_v<E>;
  using W = std::conditional_t<is_integral, std::uint64_t, double>;
  using V = Vector<double>;
  static constexpr std::int64_t most_elements = ScanPlan::most_elements;

 public:
  // `joins_four`: elements may be joined with each other first.
  template <class... Views>
  static void run(const View& out, int axis, bool backwards, bool joins_four, const Views&... views) {
    if (out.numel == 0) return;
    ScanPlan plan(out, axis);
    const ScanOperand<E, Writer> to(out, axis, backwards);
    const ScanOperand<E, Reader> from[] = {{views, axis, backwards}...};
    plan.for_each_tile([&] {
      return [&, group = Group()](const ScanPlan::Tile& at) mutable {
        const E* x[inputs];
        for (int k = 0; k < inputs; ++k) {
          x[k] = inputs == 1 && plan.has_rows() ? from[k].in_place(plan, at) : nullptr;
          if (x[k]) continue;
          from[k].read(at, group.space[k]);
          std::fill_n(group.space[k] + at.size(), V::lanes, E(0));
          x[k] = group.space[k];
        }
        // The term before the first element counts for nothing, also if its factor is NaN.
        if (inputs == 2 && at.first == 0)
          for (std::int64_t s = 0; s < at.slices; ++s)
            std::fill_n(group.space[0] + s * at.count * at.width, at.width, E(0));
        E* y = plan.has_rows() ? to.in_place(plan, at) : nullptr;
        bool is_in_place = y;
        if (!is_in_place) y = group.results;
        if (plan.has_rows())
          group.scan_rows(x, y, at, joins_four);
        else
          group.scan_slices(x, y, at);
        if (!is_in_place) to.write(at, y);
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

  // Columns that a thread scans, with what it has of their tiles. Vectors are read and written up to their ends.
  struct Group {
    E space[inputs][most_elements + V::lanes], results[most_elements + V::lanes];
    W states[ScanPlan::most_columns + V::lanes];

    Group() { std::fill(std::begin(states), std::end(states), static_cast<W>(Law::initial)); }

    void scan_rows(const E* const (&x)[inputs], E* y, const ScanPlan::Tile& at, bool joins_four) {
      if constexpr (std::is_same_v<E, float>) {
        W wide[inputs][most_elements];
        const W* rows[inputs];
        for (int k = 0; k < inputs; ++k) {
          for (std::int64_t i = 0; i < at.size(); ++i) wide[k][i] = x[k][i];
          rows[k] = wide[k];
        }
        scan_wide_rows(rows, wide[0], at, joins_four);
        for (std::int64_t i = 0; i < at.size(); ++i) y[i] = static_cast<E>(wide[0][i]);
      } else {
        const W* rows[inputs];
        for (int k = 0; k < inputs; ++k) rows[k] = reinterpret_cast<const W*>(x[k]);
        scan_wide_rows(rows, reinterpret_cast<W*>(y), at, joins_four);
      }
    }

    void scan_wide_rows(const W* const (&x)[inputs], W* y, const ScanPlan::Tile& at, bool joins_four) {
      std::int64_t s = 0;
      if (joins_four)
        for (; s < at.slices; ++s) scan_by_fours(x[0] + s * at.count, y + s * at.count, at);
      // Several rows at once do not wait for each other's states.
      for (; s + 4 <= at.slices; s += 4) scan_some_rows<4>(x, y, s * at.count, at);
      for (; s < at.slices; ++s) scan_some_rows<1>(x, y, s * at.count, at);
    }
    template <int rows>
    void scan_some_rows(const W* const (&x)[inputs], W* y, std::int64_t first, const ScanPlan::Tile& at) {
      W state[rows];
      for (W& one : state) one = states[0];
      for (std::int64_t i = first; i < first + at.count; ++i)
        for (int r = 0; r < rows; ++r)
          y[i + r * at.count] = state[r] = next(state[r], [&](int k) { return x[k][i + r * at.count]; });
      if (at.slices == 1) states[0] = state[0];
    }
    void scan_by_fours(const W* x, W* y, const ScanPlan::Tile& at) {
      if constexpr (inputs == 1 && Law::is_vectorised) {
        constexpr Law law;
        W state = states[0];
        std::int64_t i = 0;
        for (; i + 4 <= at.count; i += 4) {
          W one = x[i], two = law(one, x[i + 1]), three = law(two, x[i + 2]), four = law(two, law(x[i + 2], x[i + 3]));
          y[i] = law(state, one);
          y[i + 1] = law(state, two);
          y[i + 2] = law(state, three);
          y[i + 3] = state = law(state, four);
        }
        for (; i < at.count; ++i) y[i] = state = law(state, x[i]);
        if (at.slices == 1) states[0] = state;
      }
    }

    void scan_slices(const E* const (&x)[inputs], E* y, const ScanPlan::Tile& at) {
      for (std::int64_t first = 0; first < at.size(); first += at.count * at.width) {
        if (at.slices > 1) std::fill_n(states, at.width, static_cast<W>(Law::initial));
        if constexpr (!is_integral && Law::is_vectorised && V::lanes > 1) {
          // What the last vector writes behind its rows, the others overwrite.
          std::int64_t whole = at.width / V::lanes * V::lanes;
          if (whole < at.width) scan_columns(x, y, first, whole, at);
          for (std::int64_t j = 0; j < whole; j += V::lanes) scan_columns(x, y, first, j, at);
        } else {
          for (std::int64_t i = 0; i < at.count; ++i)
            for (std::int64_t j = 0, k = first + i * at.width; j < at.width; ++j, ++k) {
              states[j] = next(states[j], [&](int input) { return static_cast<W>(x[input][k]); });
              y[k] = static_cast<E>(states[j]);
            }
        }
      }
    }
    void scan_columns(const E* const (&x)[inputs], E* y, std::int64_t first, std::int64_t column,
                      const ScanPlan::Tile& at) {
      V state = V::load(states + column);
      for (std::int64_t i = 0, k = first + column; i < at.count; ++i, k += at.width) {
        state = next(state, [&](int input) { return load(x[input] + k); });
        store(state, y + k);
      }
      state.store(states + column);
    }
    static V load(const double* from) { return V::load(from); }
    static V load(const float* from) { return hn::PromoteTo(V::Tag(), hn::LoadU(HalfTag(), from)); }
    static void store(V v, double* to) { v.store(to); }
    static void store(V v, float* to) { hn::StoreU(hn::DemoteTo(HalfTag(), v.raw), HalfTag(), to); }
  };
};

template <class Law>
void scan_numbers(const View& out, const View& x, int axis, bool backwards, bool joins_four) {
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
