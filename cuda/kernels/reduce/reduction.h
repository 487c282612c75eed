#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <type_traits>

#include <reel/detail/view.h>

#include "../../device/launch.h"
#include "../../device/number.h"
#include "../../device/offsets.h"
#include "../../device/pack.h"
#include "../../device/split.h"

// Common parts of all reductions: which elements belong to which result, and the order in which they are joined. A
// reduction is a struct with
//
//   using Value = …                        the type of elements that it takes
//   using Run = …                          the state of some elements of one thread
//   using State = …                        the state of any elements
//   Op of(result)                          the reduction for one result
//   Run open(Value, place)                 a run's first element; `place` is its index in row-major order
//   void take(Run&, Value, place)          its next one
//   State close(Run)
//   State nothing()
//   State join(State, State)               in any order
//   void finish(State, result, Output)     writes a result
//
// The division of a reduction depends on shapes and strides only, never on the device.

namespace reel::detail::inline REEL_TARGET {

struct Output {
  void* data;
  DType dtype;
  template <class Number>
  REEL_DEVICE void put(std::int64_t result, Number number) const {
    put_number(dtype, data, result, number);
  }
};

/// The offsets of the elements of x for each result of `out`, which has size 1 on each reduced axis.
class ReducedAxes {
 public:
  ReducedAxes(const View& out, const View& x) : ReducedAxes(Split(out, x)) {
    results_ = out.numel;
    length_ = x.numel / results_;
  }

  std::int64_t results() const { return results_; }
  std::int64_t length() const { return length_; }
  /// Returns true if adjacent results are closer in memory than adjacent elements of one result.
  bool across() const { return across_; }
  /// Returns true if `lanes` elements of a result, from a multiple of `lanes` on, are always contiguous, and begin at a
  /// multiple of `lanes` from the first element of x. It depends on shapes and strides only.
  bool has_packs(int lanes) const { return !across_ && length_ >= lanes && packs_ % lanes == 0; }

  REEL_DEVICE std::int64_t first(std::int64_t result) const { return find(kept_, kept_steps_, result); }
  /// Returns true if an offset is computed without a loop, so that several elements can be read at once.
  REEL_DEVICE bool is_quick() const { return gone_steps_.few; }
  template <bool quick>
  REEL_DEVICE std::int64_t place(std::int64_t i) const {
    return quick ? gone_steps_.find(i) : find(gone_, gone_steps_, i);
  }

 private:
  // The kept or the reduced axes of x, as a view.
  struct Axes {
    std::int64_t dims[8], strides[8];
    int rank = 0;
    Iteration<1> iteration() const {
      View view{};
      view.dims = dims;
      view.strides = strides;
      view.rank = rank;
      return Iteration<1>({&view});
    }
  };
  struct Split {
    Axes stay, go;
    Split(const View& out, const View& x) {
      for (int axis = 0; axis < x.rank; ++axis) {
        Axes& axes = out.dims[axis] == 1 && x.dims[axis] != 1 ? go : stay;
        axes.dims[axes.rank] = x.dims[axis];
        axes.strides[axes.rank++] = x.strides[axis];
      }
    }
  };

  explicit ReducedAxes(const Split& split) : ReducedAxes(split.stay.iteration(), split.go.iteration()) {}
  ReducedAxes(const Iteration<1>& kept, const Iteration<1>& gone)
      : kept_(kept), gone_(gone), kept_steps_(kept), gone_steps_(gone) {
    std::int64_t hop = std::abs(kept.strides[0][0]), step = std::abs(gone.strides[0][0]);
    across_ = kept.dims[0] > 1 && gone.dims[0] > 1 && hop < step;
    if (gone.strides[0][0] != 1 || !gone_steps_.few) return;
    packs_ = 0;
    for (int axis = 0; axis < kept.rank; ++axis)
      if (kept.dims[axis] > 1) packs_ = std::gcd(packs_, kept.strides[0][axis]);
    if (gone.rank == 2) packs_ = std::gcd(std::gcd(packs_, gone.dims[0]), gone.strides[0][1]);
  }

  // Element i of up to two axes is at offset step i + hop ⌊i / inner⌋.
  struct Steps {
    std::int64_t step, hop = 0;
    Divisor inner;
    bool few;

    explicit Steps(const Iteration<1>& axes) : step(axes.strides[0][0]), few(axes.rank == 1) {
      if (axes.rank != 2 || axes.dims[0] * axes.dims[1] >= std::int64_t{1} << 31) return;
      few = true;
      hop = axes.strides[0][1] - step * axes.dims[0];
      inner = Divisor(static_cast<std::uint32_t>(axes.dims[0]));
    }
    REEL_DEVICE std::int64_t find(std::int64_t i) const {
      std::int64_t offset = i * step;
      if (hop != 0) offset += inner.quotient(static_cast<std::uint32_t>(i)) * hop;
      return offset;
    }
  };

  REEL_DEVICE static std::int64_t find(const Offsets<1>& axes, const Steps& steps, std::int64_t i) {
    if (steps.few) return steps.find(i);
    std::int64_t offset[1];
    axes.find(i, offset);
    return offset[0];
  }

  Offsets<1> kept_, gone_;
  Steps kept_steps_, gone_steps_;
  std::int64_t results_ = 0, length_ = 0;
  bool across_;
  // The greatest common divisor of all distances between contiguous ranges of elements; 1 if there are none.
  std::int64_t packs_ = 1;
};

/// Loads elements of a type known at compile time.
template <class T>
struct Elements {
  // The number of elements, or of packs, that are read before the first arrives: of packs 64 bytes, in 16 registers.
  static constexpr int at_once = sizeof(T) == 2 ? 8 : 4, lanes = full_lanes<T>, packs_at_once = 4;
  ReducedAxes axes;
  const T* data;
  bool packed, aligned;
  Elements(const ReducedAxes& axes, const View& x)
      : axes(axes), data(x.as<const T>()), packed(axes.has_packs(lanes)), aligned(is_aligned<T>(x, lanes)) {}
  /// Loads contiguous elements from element i on, by one access if addresses allow it.
  REEL_DEVICE Pack<T, lanes> pack(std::int64_t first, std::int64_t i) const {
    const T* from = data + first + axes.place<true>(i);
    Pack<T, lanes> pack;
    if (aligned) {
      // Loads words, so that the compiler does not merge these loads with those of single elements.
      Words words = *reinterpret_cast<const Words*>(from);
      std::memcpy(static_cast<void*>(&pack), &words, sizeof pack);
    } else {
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane) pack.element[lane] = from[lane];
    }
    return pack;
  }
  template <class Value, bool quick>
  REEL_DEVICE Value at(std::int64_t first, std::int64_t i) const {
    return static_cast<Value>(loaded(data[first + axes.place<quick>(i)]));
  }
  REEL_DEVICE std::int64_t first(std::int64_t result) const { return axes.first(result); }
  REEL_DEVICE bool is_quick() const { return axes.is_quick(); }

 private:
  struct alignas(16) Words {
    std::uint64_t of[2];
  };
};

/// Loads elements of any integer type.
struct Integers {
  static constexpr int at_once = 4, lanes = 1;
  static constexpr bool packed = false;
  ReducedAxes axes;
  const void* data;
  DType dtype;
  Integers(const ReducedAxes& axes, const View& x) : axes(axes), data(x.data), dtype(x.dtype) {}
  template <class Value, bool quick>
  REEL_DEVICE Value at(std::int64_t first, std::int64_t i) const {
    return static_cast<Value>(number_at<std::int64_t>(dtype, data, first + axes.place<quick>(i)));
  }
  REEL_DEVICE std::int64_t first(std::int64_t result) const { return axes.first(result); }
  REEL_DEVICE bool is_quick() const { return axes.is_quick(); }
};

/// The states of parts of each result: (parts, results).
template <class State>
struct PartStates {
  static constexpr int at_once = 4, lanes = 1;
  const State* states;
  std::int64_t results;
  template <class Value, bool quick>
  REEL_DEVICE Value at(std::int64_t first, std::int64_t i) const {
    return states[first + i * results];
  }
  REEL_DEVICE std::int64_t first(std::int64_t result) const { return result; }
  REEL_DEVICE bool is_quick() const { return true; }
};

/// Continues a reduction from such states.
template <class Op>
struct Joining : Op {
  using State = typename Op::State;
  using Value = State;
  using Run = State;
  REEL_DEVICE Joining of(std::int64_t result) const { return Joining{Op::of(result)}; }
  REEL_DEVICE Run open(const State& state, std::int64_t) const { return state; }
  REEL_DEVICE void take(Run& run, const State& state, std::int64_t) const { run = Op::join(run, state); }
  REEL_DEVICE State close(const Run& run) const { return run; }
};

/// The division of work among the threads of blocks. A block has columns, each with a result, and lanes.
struct ReductionGrid {
  static constexpr int threads = 256;
  static constexpr std::int64_t enough_blocks = 512, run_length = 16;

  std::int64_t results, length;
  int columns, lanes;
  bool across;
  std::int64_t blocks, parts = 1, part_length;
  Split of_group;  // into part and block

  /// `unit`: the number of elements that a thread takes at a time.
  ReductionGrid(std::int64_t results, std::int64_t length, bool across, bool may_cut, int unit = 1)
      : results(results), length(length), across(across) {
    // Adjacent columns replace lanes only as far as needed to read memory in whole cache lines.
    int beside = 1, most_beside = may_cut ? 32 : 8;
    while (across && beside < most_beside && beside < results) beside *= 2;
    int most_lanes = threads / beside;
    lanes = 1;
    while (lanes < most_lanes && lanes * std::max(unit, 4) < length) lanes *= 2;
    columns = threads / lanes;
    blocks = (results + columns - 1) / columns;
    if (may_cut && blocks < enough_blocks) {
      std::int64_t most = length / (lanes * run_length), wanted = 2 * enough_blocks / blocks;
      parts = std::max<std::int64_t>(std::min(most, wanted), 1);
    }
    part_length = (length + parts - 1) / parts;
    std::int64_t together = std::int64_t{lanes} * unit;
    part_length = (part_length + together - 1) / together * together;
    parts = (length + part_length - 1) / part_length;
    of_group = Split(blocks, blocks * parts);
  }
};

template <class Op, class Source>
struct Reduce {
  using Value = typename Op::Value;
  using Run = typename Op::Run;
  using State = typename Op::State;

  Op op;
  Source source;
  ReductionGrid grid;
  State* part_states;
  Output out;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    State* states = group.template shared<State>(ReductionGrid::threads);
    Split::Parts parts = grid.of_group(group.index());
    std::int64_t part = parts.whole, first = parts.rest * grid.columns;
    group.each([&](int thread) {
      int column = grid.across ? thread % grid.columns : thread / grid.lanes;
      int lane = grid.across ? thread / grid.columns : thread % grid.lanes;
      std::int64_t result = first + column, begin = part * grid.part_length, end = begin + grid.part_length;
      if (end > grid.length) end = grid.length;
      states[lane * grid.columns + column] =
          result < grid.results ? accumulate_range(op.of(result), source.first(result), begin, lane, end)
                                : op.nothing();
    });
    for (int half = grid.lanes / 2; half > 0; half /= 2)
      group.each([&](int thread) {
        if (thread < half * grid.columns)
          states[thread] = op.join(states[thread], states[thread + half * grid.columns]);
      });
    group.each([&](int thread) {
      std::int64_t result = first + thread;
      if (thread >= grid.columns || result >= grid.results) return;
      if (part_states)
        part_states[part * grid.results + result] = states[thread];
      else
        op.of(result).finish(states[thread], result, out);
    });
  }

 private:
  REEL_DEVICE State accumulate_range(const Op& own, std::int64_t first, std::int64_t begin, int lane,
                                     std::int64_t end) const {
    State total = own.nothing();
    std::int64_t i = begin + lane;
    if constexpr (Source::lanes > 1)
      if (source.packed) {
        take_packs(total, own, first, begin + lane * Source::lanes, end);
        i = begin + (end - begin) / Source::lanes * Source::lanes + lane;
      }
    if (source.is_quick()) {
      if constexpr (Source::at_once == 8) stride<8>(total, own, first, i, end);
      stride<4>(total, own, first, i, end);
    }
    stride<1>(total, own, first, i, end);
    return total;
  }

  // Takes packs of adjacent elements, a run for each element of a pack: first several packs at a time, then one.
  REEL_DEVICE void take_packs(State& total, const Op& own, std::int64_t first, std::int64_t i, std::int64_t end) const {
    constexpr int lanes = Source::lanes, at_once = Source::packs_at_once;
    int step = grid.lanes * lanes;
    std::int64_t last = end - lanes - (at_once - 1) * step;
    while (i <= last) i = take_run<at_once>(total, own, first, i, step, last);
    while (i <= end - lanes) i = take_run<1>(total, own, first, i, step, end - lanes);
  }

  // Takes up to run_length packs, `at_once` of them while they begin at `last` or before; returns where the next begins.
  template <int at_once>
  REEL_DEVICE std::int64_t take_run(State& total, const Op& own, std::int64_t first, std::int64_t i, int step,
                                    std::int64_t last) const {
    Run runs[Source::lanes];
    take_set<at_once, true>(runs, own, first, i, step);
    i += at_once * step;
    for (int n = at_once; n < ReductionGrid::run_length && i <= last; n += at_once, i += at_once * step)
      take_set<at_once, false>(runs, own, first, i, step);
    total = own.join(total, joined<Source::lanes>(own, runs));
    return i;
  }
  template <int at_once, bool opens>
  REEL_DEVICE void take_set(Run* runs, const Op& own, std::int64_t first, std::int64_t i, int step) const {
    decltype(source.pack(first, i)) packs[at_once];
#pragma unroll
    for (int k = 0; k < at_once; ++k) packs[k] = source.pack(first, i + k * step);
#pragma unroll
    for (int k = 0; k < at_once; ++k)
#pragma unroll
      for (int lane = 0; lane < Source::lanes; ++lane) {
        auto value = static_cast<Value>(loaded(packs[k].element[lane]));
        std::int64_t place = i + k * step + lane;
        if (opens && k == 0)
          runs[lane] = own.open(value, place);
        else
          own.take(runs[lane], value, place);
      }
  }

  // Takes `at_once` elements at a time while there are as many.
  template <int at_once>
  REEL_DEVICE void stride(State& total, const Op& own, std::int64_t first, std::int64_t& i, std::int64_t end) const {
    int step = grid.lanes, more = (at_once - 1) * step;
    while (i + more < end) {
      Run runs[at_once];
#pragma unroll
      for (int k = 0; k < at_once; ++k) runs[k] = own.open(read<at_once != 1>(first, i + k * step), i + k * step);
      i += at_once * step;
      for (int n = 1; n < ReductionGrid::run_length && i + more < end; ++n, i += at_once * step) {
        Value values[at_once];
#pragma unroll
        for (int k = 0; k < at_once; ++k) values[k] = read<at_once != 1>(first, i + k * step);
#pragma unroll
        for (int k = 0; k < at_once; ++k) own.take(runs[k], values[k], i + k * step);
      }
      total = own.join(total, joined<at_once>(own, runs));
    }
  }

  template <int count>
  REEL_DEVICE static State joined(const Op& own, const Run* runs) {
    if constexpr (count == 1)
      return own.close(*runs);
    else
      return own.join(joined<count / 2>(own, runs), joined<count / 2>(own, runs + count / 2));
  }

  template <bool quick>
  REEL_DEVICE Value read(std::int64_t first, std::int64_t i) const {
    return source.template at<Value, quick>(first, i);
  }
};

template <class Op, class Source>
void run_reduction(const Op& op, const Source& source, const ReductionGrid& grid, typename Op::State* part_states,
                   const Output& out) {
  for_each_block(grid.blocks * grid.parts, ReductionGrid::threads, ReductionGrid::threads * sizeof(typename Op::State),
                 Reduce<Op, Source>{op, source, grid, part_states, out});
}

/// Reduces at least one element for each result. Few and long results are divided into parts, which a second pass
/// joins.
template <class Op, class Source>
void reduce(const Op& op, const Source& source, const Output& out) {
  using State = typename Op::State;
  const ReducedAxes& axes = source.axes;
  ReductionGrid grid(axes.results(), axes.length(), axes.across(), true, source.packed ? Source::lanes : 1);
  if (grid.parts == 1) return run_reduction(op, source, grid, nullptr, out);
  Scratch scratch(static_cast<std::size_t>(grid.parts * grid.results) * sizeof(State));
  auto* states = scratch.as<State>();
  run_reduction(op, source, grid, states, out);
  run_reduction(Joining<Op>{op}, PartStates<State>{states, grid.results},
                ReductionGrid(grid.results, grid.parts, grid.results > 1, false), nullptr, out);
}

/// A reduction of floating elements.
template <class Op>
void reduce_floating(const Op& op, const View& x, const ReducedAxes& axes, const Output& out) {
  if constexpr (!std::is_same_v<typename Op::Value, float>)
    if (x.dtype == DType::f64) return reduce(op, Elements<double>(axes, x), out);
  if (x.dtype == DType::bf16) return reduce(op, Elements<BFloat16>(axes, x), out);
  if (x.dtype == DType::f16) return reduce(op, Elements<Float16>(axes, x), out);
  reduce(op, Elements<float>(axes, x), out);
}

template <class Number>
struct FillResults {
  Output out;
  Number number;
  REEL_DEVICE void operator()(std::int64_t i) const { out.put(i, number); }
};

/// Fills all results with that of an empty reduction.
inline void fill_results(const View& out, double number) {
  Output to{out.data, out.dtype};
  if (is_floating(out.dtype))
    for_each(out.numel, FillResults<double>{to, number});
  else
    for_each(out.numel, FillResults<std::int64_t>{to, static_cast<std::int64_t>(number)});
}

}  // namespace reel::detail::inline REEL_TARGET
