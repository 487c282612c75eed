#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include <reel/detail/view.h>

#include "../../device/launch.h"
#include "../../device/number.h"
#include "../../device/offsets.h"

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

namespace reel::detail {
inline namespace REEL_TARGET {

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
};

/// Loads elements of a type known at compile time.
template <class T>
struct Elements {
  // the number of elements that are read before the first arrives
  static constexpr int at_once = sizeof(T) == 2 ? 8 : 4;
  ReducedAxes axes;
  const T* data;
  Elements(const ReducedAxes& axes, const View& x) : axes(axes), data(x.as<const T>()) {}
  template <class Value, bool quick>
  REEL_DEVICE Value at(std::int64_t first, std::int64_t i) const {
    return static_cast<Value>(loaded(data[first + axes.place<quick>(i)]));
  }
  REEL_DEVICE std::int64_t first(std::int64_t result) const { return axes.first(result); }
  REEL_DEVICE bool is_quick() const { return axes.is_quick(); }
};

/// Loads elements of any integer type.
struct Integers {
  static constexpr int at_once = 4;
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
  static constexpr int at_once = 4;
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

  ReductionGrid(std::int64_t results, std::int64_t length, bool across, bool may_cut)
      : results(results), length(length), across(across) {
    // Adjacent columns replace lanes only as far as needed to read memory in whole cache lines.
    int beside = 1, most_beside = may_cut ? 32 : 8;
    while (across && beside < most_beside && beside < results) beside *= 2;
    int most_lanes = threads / beside;
    lanes = 1;
    while (lanes < most_lanes && lanes * 4 < length) lanes *= 2;
    columns = threads / lanes;
    blocks = (results + columns - 1) / columns;
    if (may_cut && blocks < enough_blocks) {
      std::int64_t most = length / (lanes * run_length), wanted = 2 * enough_blocks / blocks;
      parts = std::max<std::int64_t>(std::min(most, wanted), 1);
    }
    part_length = (length + parts - 1) / parts;
    part_length = (part_length + lanes - 1) / lanes * lanes;
    parts = (length + part_length - 1) / part_length;
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
    std::int64_t part = group.index() / grid.blocks, first = group.index() % grid.blocks * grid.columns;
    group.each([&](int thread) {
      int column = grid.across ? thread % grid.columns : thread / grid.lanes;
      int lane = grid.across ? thread / grid.columns : thread % grid.lanes;
      std::int64_t result = first + column, begin = part * grid.part_length, end = begin + grid.part_length;
      if (end > grid.length) end = grid.length;
      states[lane * grid.columns + column] =
          result < grid.results ? accumulate_range(op.of(result), source.first(result), begin + lane, end)
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
  REEL_DEVICE State accumulate_range(const Op& own, std::int64_t first, std::int64_t i, std::int64_t end) const {
    State total = own.nothing();
    if (source.is_quick()) {
      if constexpr (Source::at_once == 8) stride<8>(total, own, first, i, end);
      stride<4>(total, own, first, i, end);
    }
    stride<1>(total, own, first, i, end);
    return total;
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
  ReductionGrid grid(axes.results(), axes.length(), axes.across(), true);
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

}  // namespace REEL_TARGET
}  // namespace reel::detail
