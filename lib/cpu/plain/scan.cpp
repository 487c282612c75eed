#include <algorithm>
#include <limits>

#include "../../core/convert.h"
#include "../../core/dtype_dispatch.h"
#include "../../core/threads/parallel.h"
#include "../../kernels/formulas/binary.h"
#include "../cpu_kernels.h"

namespace reel::detail {
namespace {

// Adjacent lines along the axis are scanned together. Each state has the widest type of its kind.
constexpr std::int64_t most_lines = 64;

// The axis along which lines are adjacent, −1 if there is only one line. Along the last axis each line uses cache lines
// of its own, so that fewer lines are scanned together.
int axis_across(const View& view, int axis) { return axis == view.rank - 1 ? axis - 1 : view.rank - 1; }
std::int64_t lines_in_hand(const View& view, int axis) { return axis == view.rank - 1 ? 8 : most_lines; }

// The offset of the line with index `line`, lines being counted in row-major order without the axis.
std::int64_t line_start(const View& view, int axis, std::int64_t line) {
  std::int64_t offset = 0;
  for (int i = view.rank; i-- > 0;) {
    if (i == axis) continue;
    offset += line % view.dims[i] * view.strides[i];
    line /= view.dims[i];
  }
  return offset;
}

// Calls lines(first, count) for groups of adjacent lines.
template <class ForLines>
void for_each_group(const View& out, int axis, ForLines lines) {
  std::int64_t length = out.dims[axis];
  if (out.numel == 0) return;
  int across = axis_across(out, axis);
  std::int64_t beside = across < 0 ? 1 : out.dims[across], most = lines_in_hand(out, axis);
  std::int64_t in_row = (beside + most - 1) / most, rows = out.numel / length / beside;
  std::int64_t group_elements = length * std::min(beside, most);
  std::int64_t grain = (parallel_grain + group_elements - 1) / group_elements;
  parallel_for(rows * in_row, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin; group < end; ++group) {
      std::int64_t start = group % in_row * most;
      lines(group / in_row * beside + start, std::min(most, beside - start));
    }
  });
}

// The strides along a line, and from one line to the next.
struct Steps {
  std::int64_t along, across;
  Steps(const View& view, int axis, bool backwards)
      : along(backwards ? -view.strides[axis] : view.strides[axis]),
        across(axis_across(view, axis) < 0 ? 0 : view.strides[axis_across(view, axis)]) {}
};

template <class T>
T* first_of(const View& view, int axis, bool backwards, std::int64_t line) {
  return view.as<T>() + line_start(view, axis, line) + (backwards ? (view.dims[axis] - 1) * view.strides[axis] : 0);
}

// state = step(state, x) along each line, starting from `initial`.
template <class State, class R, class T, class Step>
void scan(const View& out, const View& x, int axis, bool backwards, State initial, Step step) {
  Steps to_strides(out, axis, backwards), from_strides(x, axis, backwards);
  for_each_group(out, axis, [&](std::int64_t line, std::int64_t count) {
    R* to = first_of<R>(out, axis, backwards, line);
    const T* from = first_of<const T>(x, axis, backwards, line);
    State state[most_lines];
    std::fill_n(state, count, initial);
    for (std::int64_t i = 0; i < out.dims[axis]; ++i, to += to_strides.along, from += from_strides.along)
      for (std::int64_t j = 0; j < count; ++j) {
        state[j] = step(state[j], static_cast<State>(from[j * from_strides.across]));
        to[j * to_strides.across] = convert<R>(state[j]);
      }
  });
}

template <class Step>
void scan_any(const View& out, const View& x, int axis, bool backwards, int initial, Step step) {
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    // Integers wrap around as unsigned ones.
    if constexpr (std::is_integral_v<T>)
      scan<std::uint64_t, std::uint64_t, T>(out, x, axis, backwards, static_cast<std::uint64_t>(initial), step);
    else
      scan<double, T, T>(out, x, axis, backwards, static_cast<double>(initial), step);
  });
}

void cumsum(const View& out, const View& x, int axis, bool backwards) {
  scan_any(out, x, axis, backwards, 0, [](auto sum, auto term) { return sum + term; });
}

void cumprod(const View& out, const View& x, int axis, bool backwards) {
  scan_any(out, x, axis, backwards, 1, [](auto product, auto factor) { return product * factor; });
}

void logcumsumexp(const View& out, const View& x, int axis) {
  with_floating(x.dtype, [&]<class T>(std::type_identity<T>) {
    scan<double, T, T>(out, x, axis, false, -std::numeric_limits<double>::infinity(), formulas::Logaddexp());
  });
}

void recurrence(const View& out, const View& a, const View& b, int axis, bool backwards) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    Steps to_strides(out, axis, backwards), a_strides(a, axis, backwards), b_strides(b, axis, backwards);
    for_each_group(out, axis, [&](std::int64_t line, std::int64_t count) {
      T* to = first_of<T>(out, axis, backwards, line);
      const T *factor = first_of<const T>(a, axis, backwards, line),
              *term = first_of<const T>(b, axis, backwards, line);
      double state[most_lines];
      for (std::int64_t i = 0; i < out.dims[axis]; ++i) {
        for (std::int64_t j = 0; j < count; ++j) {
          double next = static_cast<double>(term[j * b_strides.across]);
          // The term before the first element is skipped, because 0 times a NaN factor would be NaN.
          if (i > 0) next += static_cast<double>(factor[j * a_strides.across]) * state[j];
          state[j] = next;
          to[j * to_strides.across] = convert<T>(next);
        }
        to += to_strides.along;
        factor += a_strides.along;
        term += b_strides.along;
      }
    });
  });
}

}  // namespace

void fill_scan(KernelTable& table) {
  table.cumsum = cumsum;
  table.cumprod = cumprod;
  table.logcumsumexp = logcumsumexp;
  table.recurrence = recurrence;
}

}  // namespace reel::detail
