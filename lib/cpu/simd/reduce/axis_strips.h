#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

#include "../../../core/halves.h"
#include "../../../core/iteration.h"
#include "../../../core/threads/parallel.h"
#include "../../cached_space.h"
#include "../elementwise/elementwise.h"
#include "../vector/half_rows.h"
#include "../vector/streaming.h"
#include "../vector/vector.h"

// Kernels that compute results from sums along one axis, which is the last one of their views. A slice holds the elements
// of that axis and of the axes inside it. Where these are many, vectors run across them, and a strip is some columns of a
// slice; where they are few, a strip is a whole slice, whose vectors hold several positions of the axis. The order of a
// sum depends on the sizes of these axes only. This header is compiled once per instruction set.

namespace reel::detail::inline REEL_TARGET {

template <class W, class T>
HWY_INLINE Vector<W> load_wide(const T* from) {
  if constexpr (std::is_same_v<T, W>)
    return Vector<W>::load(from);
  else
    return load_widened(from);
}

/// Loads fewer elements than a vector has; the others are zeros.
template <class W, class T>
HWY_INLINE Vector<W> load_wide(const T* from, std::int64_t count) {
  if constexpr (std::is_same_v<T, W>)
    return Vector<W>::load(from, count);
  else
    return load_widened(from, count);
}

/// The elements of a strip: its line i begins at data + i step.
template <class T>
struct StripData {
  T* data;
  std::int64_t step;
};

/// A vector of a strip, which may be used in part. `slot`: which of a strip's `Values` belong to it.
template <class W, bool whole>
struct StripVector {
  using V = Vector<W>;
  int slot;
  std::int64_t line, column, used;

  std::int64_t count() const { return whole ? V::lanes : used; }
  template <class T>
  T* in(StripData<T> lines) const {
    return lines.data + line * lines.step + column;
  }
  template <class T>
  HWY_INLINE V load(StripData<T> from) const {
    if constexpr (whole)
      return load_wide<W>(in(from));
    else
      return load_wide<W>(in(from), used);
  }
  HWY_INLINE void store(StripData<W> to, V v) const {
    if constexpr (whole)
      v.store(in(to));
    else
      v.store(in(to), used);
  }
  /// v, with `fill` in the lanes that are not used.
  HWY_INLINE V padded(V v, V fill) const {
    if constexpr (whole) return v;
    return hn::IfThenElse(hn::FirstN(typename V::Tag(), static_cast<std::size_t>(used)), v.raw, fill.raw);
  }
};

/// StripData of four whole vectors, or of one, which for columns may be used in part. A row is a slice without inner axes.
template <class W, int vectors, bool row>
class Strip {
  using V = Vector<W>;
  static constexpr bool whole = vectors == 4 || row;

 public:
  /// One number for each column.
  struct Values {
    V of[vectors];
    V operator[](int slot) const { return of[slot]; }
    static HWY_INLINE Values all(V v) {
      if constexpr (vectors == 1)
        return {{v}};
      else
        return {{v, v, v, v}};
    }
  };

  static Strip columns(std::int64_t lines, std::int64_t width) { return Strip(lines, width, 0, 0); }
  /// A slice whose inner axes have `inner` elements.
  static Strip slice(std::int64_t length, std::int64_t inner) {
    std::int64_t line = vectors * V::lanes / inner * inner;
    return Strip(length * inner / line, line / vectors, length * inner % line, inner);
  }

  /// The number of sums of the strip.
  std::int64_t results() const { return period() ? period() : vectors * width_; }
  /// The number of elements of a line.
  std::int64_t line() const { return vectors * width_; }
  /// The step from one position of the axis to the next.
  std::int64_t axis_step(std::int64_t line_step) const { return period() ? period() : line_step; }

  template <class F>
  HWY_INLINE void each(F f) const {
    each_of_lines(0, lines_, f);
    each_of_rest(f);
  }
  /// Σ f: the error does not grow with the length, since lines are added in groups of sixteen, and these in pairs.
  template <class F>
  HWY_INLINE Values sum(F f) const {
    Values total = lines_ <= 16 ? sum_of_few_lines(f, 0, lines_) : sum_of_lines(f, 0, lines_);
    V rest = V::repeat(0);
    each_of_rest([&](auto at) { rest = rest + at.padded(f(at), V::repeat(0)); });
    total.of[0] = total.of[0] + rest;
    return joined(total, Plus());
  }
  /// The largest elements; NaN is ignored, or is the result.
  template <class T>
  HWY_INLINE Values largest(StripData<T> x) const {
    V lowest = V::repeat(-std::numeric_limits<W>::infinity()), fill = period() ? lowest : V::repeat(0);
    Values most = Values::all(lowest);
    each([&](auto at) { most.of[at.slot] = Larger()(most.of[at.slot], at.padded(at.load(x), fill)); });
    return joined(most, Larger());
  }
  /// f of each number; for a row of the only one.
  template <class F>
  HWY_INLINE Values map(Values values, F f) const {
    if constexpr (row) return Values::all(V::repeat(f(hn::GetLane(values.of[0].raw))));
    for (V& v : values.of) v = f(v);
    return values;
  }
  static void store(Values values, W* to) {
    for (int k = 0; k < (row ? 1 : vectors); ++k) values.of[k].store(to + k * V::lanes);
  }
  /// The numbers of the columns, `results()` of them.
  Values load(const W* from) const {
    if constexpr (row) return Values::all(V::repeat(*from));
    Values values = Values::all(V::load(from, std::min(results(), V::lanes)));
    for (int k = 1; k < vectors; ++k) values.of[k] = V::load(from + k * V::lanes);
    return period() ? joined(values, Plus()) : values;
  }

 private:
  struct Plus {
    template <class N>
    N operator()(N a, N b) const {
      return a + b;
    }
    V across(V v) const { return hn::SumOfLanes(typename V::Tag(), v.raw); }
  };
  struct Larger {
    V operator()(V a, V b) const { return hn::Max(a.raw, b.raw); }
    W operator()(W a, W b) const { return std::max(a, b); }
    V across(V v) const { return hn::MaxOfLanes(typename V::Tag(), v.raw); }
  };

  Strip(std::int64_t lines, std::int64_t width, std::int64_t rest, std::int64_t period)
      : lines_(lines), width_(whole ? V::lanes : width), rest_(rest), period_(period) {}

  // The distance of the lanes that belong to one result; 0 if there are none.
  std::int64_t period() const { return row ? 1 : vectors == 4 ? 0 : period_; }

  template <class F>
  HWY_INLINE void each_of_lines(std::int64_t first, std::int64_t last, F& f) const {
    for (std::int64_t line = first; line < last; ++line)
#pragma GCC unroll 4
      for (int k = 0; k < vectors; ++k) f(StripVector<W, whole>{k, line, k * V::lanes, width_});
  }
  template <class F>
  HWY_INLINE void each_of_rest(F&& f) const {
    for (std::int64_t i = 0; i < rest_; i += V::lanes)
      f(StripVector<W, false>{0, lines_, i, std::min(V::lanes, rest_ - i)});
  }
  template <class F>
  HWY_INLINE Values sum_of_few_lines(F& f, std::int64_t first, std::int64_t last) const {
    Values sums = Values::all(V::repeat(0));
    auto add = [&](auto at) { sums.of[at.slot] = sums.of[at.slot] + f(at); };
    each_of_lines(first, last, add);
    return sums;
  }
  template <class F>
  HWY_NOINLINE Values sum_of_lines(F& f, std::int64_t first, std::int64_t last) const {
    if (last - first <= 16) return sum_of_few_lines(f, first, last);
    std::int64_t middle = first + ((last - first) / 2 + 15) / 16 * 16;
    Values sums = sum_of_lines(f, first, middle), others = sum_of_lines(f, middle, last);
    for (int k = 0; k < vectors; ++k) sums.of[k] = sums.of[k] + others.of[k];
    return sums;
  }
  // Joins what belongs to one result, and repeats it.
  template <class Op>
  HWY_INLINE Values joined(Values values, Op op) const {
    if constexpr (row) {
      V one = values.of[0];
      if constexpr (vectors == 4) one = op(op(one, values.of[1]), op(values.of[2], values.of[3]));
      return Values::all(op.across(one));
    }
    if (period() == 0) return values;
    W each[2 * V::lanes];
    values.of[0].store(each);
    for (std::int64_t i = width_; i-- > period_;) each[i - period_] = op(each[i - period_], each[i]);
    for (std::int64_t i = period_; i < V::lanes; ++i) each[i] = each[i - period_];
    return Values::all(V::load(each));
  }

  std::int64_t lines_, width_, rest_, period_;
};

/// One number for each result of a strip.
template <class W>
class StripNumbers {
 public:
  StripNumbers() = default;
  template <class S>
  StripNumbers(const S& strip, typename S::Values values) {
    strip.store(values, number_);
  }
  W& operator[](std::int64_t result) { return number_[result]; }

 private:
  W number_[4 * Vector<W>::lanes];
};

/// How a contiguous tensor, whose axis in question was moved behind the others, consists of slices.
struct Slices {
  std::int64_t length = 1, inner, count = 1;
  int outer_axes = 0;  ///< the number of axes that the slices are along

  explicit Slices(const View& x) {
    if (x.rank > 0) length = x.dims[x.rank - 1];
    inner = length == 1 ? x.numel : x.strides[x.rank - 1];
    while (count * inner * length < x.numel) count *= x.dims[outer_axes++];
  }
  /// Returns true if a strip is a whole slice.
  template <class W>
  bool folds() const {
    return inner == 1 || 2 * inner <= Vector<W>::lanes;
  }
  /// Returns true if slices of x can be read in place.
  template <class W>
  bool fit(const View& x) const {
    std::int64_t step = 1;
    for (int axis = x.rank - 1; axis-- > outer_axes;) {
      if (x.dims[axis] != 1 && x.strides[axis] != step) return false;
      step *= x.dims[axis];
    }
    return length == 1 || !folds<W>() || x.strides[x.rank - 1] == inner;
  }
};

/// The elements of a strip of an input.
struct StripInput {
  const std::byte* data;
  std::int64_t step, size;
  template <class T>
  StripData<const T> as() const {
    return {reinterpret_cast<const T*>(data), step};
  }
  StripInput from(std::int64_t column) const { return {data + column * size, step, size}; }
};

/// Calls f(strip, to, inputs, first) for strips that make up a contiguous tensor: `to` are lines for results, `inputs` one
/// StripInput each, and `first` is the index of the strip's first sum.
template <class T, bool writes, int input_count, class F>
class StripLoop {
  using W = Wide<T>;
  static constexpr std::int64_t lanes = Vector<W>::lanes, most_width = 4 * lanes;
  static constexpr std::int64_t most_lines = 4096;  // of the greatest width they fill a megabyte

 public:
  StripLoop(const View& like, const F& f) : slices_(like), like_(like), f_(f) {
    width_ = folds() ? slices_.inner : slices_.length > most_lines ? lanes : most_width;
    bool large = like.numel * static_cast<std::int64_t>(sizeof(T)) >= streaming_bytes;
    streams_ = std::is_same_v<T, W> && large && slices_.length * width_ <= most_lines * most_width;
    buffers_ = writes && (streams_ || !std::is_same_v<T, W>);
  }
  void run(const View* const (&inputs)[input_count]) const {
    std::optional<CachedSpace<std::byte>> copies[input_count];
    View views[input_count + 1] = {like_};
    const View* pointers[input_count + 1] = {&views[0]};
    StripInput starts[input_count];
    for (int k = 0; k < input_count; ++k) {
      View& view = views[k + 1] = *inputs[k];
      pointers[k + 1] = &view;
      if (!slices_.fit<W>(view)) copy_view(view, copies[k]);
      auto size = static_cast<std::int64_t>(size_of(view.dtype));
      starts[k] = {view.as<std::byte>(), view.rank > 0 ? view.strides[view.rank - 1] : 0, size};
    }
    for (View& view : views) view.rank = slices_.outer_axes;
    Iteration<input_count + 1> outer(pointers);
    std::int64_t groups = (slices_.inner + width_ - 1) / width_, group_elements = slices_.length * width_;
    std::int64_t grain = std::max<std::int64_t>(parallel_grain / group_elements, 1);
    parallel_for(slices_.count * groups, grain, [&](std::int64_t begin, std::int64_t end) {
      CachedSpace<W> buffer(buffers_ ? group_elements : 0);
      std::int64_t slice = begin / groups, last = (end + groups - 1) / groups;
      outer.for_each_part(slice, last, [&](const std::int64_t* offsets, std::int64_t count) {
        StripInput from[input_count];
        for (int k = 0; k < input_count; ++k) from[k] = starts[k].from(offsets[k + 1]);
        auto each_slice = [&](auto run) {
          for (std::int64_t i = 0; i < count; ++i, ++slice) {
            run();
            for (int k = 0; k < input_count; ++k) from[k] = from[k].from(outer.strides[k + 1][0]);
          }
        };
        auto run_whole = [&](auto strip) { each_slice([&] { run_slice(strip, slice, from, buffer.get()); }); };
        if (!folds())
          each_slice([&] {
            std::int64_t group = std::max<std::int64_t>(begin - slice * groups, 0);
            for (; group < std::min(groups, end - slice * groups); ++group)
              run_group(slice, group * width_, from, buffer.get());
          });
        else if (slices_.inner > 1)
          run_whole(Strip<W, 1, false>::slice(slices_.length, slices_.inner));
        else if (slices_.length < most_width)
          run_whole(Strip<W, 1, true>::slice(slices_.length, 1));
        else
          run_whole(Strip<W, 4, true>::slice(slices_.length, 1));
      });
      if (buffers_ && streams_) end_streaming();
    });
  }

 private:
  bool folds() const { return slices_.folds<W>(); }

  // Moves a view to a copy in the layout of the results.
  void copy_view(View& view, std::optional<CachedSpace<std::byte>>& copy) const {
    copy.emplace(view.numel * static_cast<std::int64_t>(size_of(view.dtype)));
    View to = like_;
    to.dtype = view.dtype;
    to.data = copy->get();
    copy_elements(to, view);
    view = to;
  }

  template <class S>
  HWY_INLINE void run_slice(const S& strip, std::int64_t slice, const StripInput (&from)[input_count],
                            W* buffer) const {
    std::int64_t elements = slices_.length * slices_.inner, step = strip.line();
    T* to = like_.as<T>() + slice * elements;
    StripInput inputs[input_count];
    for (int k = 0; k < input_count; ++k) inputs[k] = {from[k].data, step, from[k].size};
    f_(strip, StripData<W>{buffers_ ? buffer : reinterpret_cast<W*>(to), step}, inputs, slice * slices_.inner);
    if (buffers_) write(to, buffer, elements);
  }
  // Runs up to `width_` columns of a slice.
  void run_group(std::int64_t slice, std::int64_t column, const StripInput (&from)[input_count], W* buffer) const {
    std::int64_t length = slices_.length, inner = slices_.inner, width = std::min(width_, inner - column);
    T* to = like_.as<T>() + slice * length * inner + column;
    StripData<W> results{buffers_ ? buffer : reinterpret_cast<W*>(to), buffers_ ? width_ : inner};
    auto run_strip = [&](const auto& strip, std::int64_t i) {
      StripInput inputs[input_count];
      for (int k = 0; k < input_count; ++k) inputs[k] = from[k].from(column + i);
      f_(strip, StripData<W>{results.data + i, results.step}, inputs, slice * inner + column + i);
    };
    if (width == most_width)
      run_strip(Strip<W, 4, false>::columns(length, lanes), 0);
    else
      for (std::int64_t i = 0; i < width; i += lanes)
        run_strip(Strip<W, 1, false>::columns(length, std::min(lanes, width - i)), i);
    if (buffers_)
      for (std::int64_t line = 0; line < length; ++line) write(to + line * inner, buffer + line * width_, width);
  }
  void write(T* to, const W* results, std::int64_t count) const {
    if constexpr (!std::is_same_v<T, W>)
      narrow_row(to, results, count);
    else
      copy_streaming(to, results, count * static_cast<std::int64_t>(sizeof(T)));
  }

  Slices slices_;
  const View& like_;
  const F& f_;
  std::int64_t width_;
  bool streams_, buffers_;
};

template <class T, bool writes = true, int input_count, class F>
void for_each_strip(const View& like, const View* const (&inputs)[input_count], const F& f) {
  if (like.numel > 0) StripLoop<T, writes, input_count, F>(like, f).run(inputs);
}

}  // namespace reel::detail::inline REEL_TARGET
