#include "scan.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "../../../lib/kernels/formulas/binary.h"
#include "../../device/number.h"
#include "../../device/offsets.h"
#include "../../device/rows_along.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// The lines of the output and of the inputs along an axis. Elements are counted in the direction of the scan.
template <int count>
struct ScanLines {
  Offsets<count> starts;
  void* data[count];
  DType dtypes[count];
  std::int64_t steps[count], lines, length;
  /// True if adjacent lines are closer in memory than adjacent elements.
  bool across;

  ScanLines(const View* const (&views)[count], int axis, bool backwards)
      : ScanLines(rows_along(views, axis), views, axis, backwards) {}

  REEL_DEVICE void find(std::int64_t line, std::int64_t (&at)[count]) const { starts.find(line, at); }
  template <class Number>
  REEL_DEVICE Number number(int operand, const std::int64_t (&at)[count], std::int64_t i) const {
    return number_at<Number>(dtypes[operand], data[operand], at[operand] + i * steps[operand]);
  }
  template <class Number>
  REEL_DEVICE void put(const std::int64_t (&at)[count], std::int64_t i, Number value) const {
    put_number(dtypes[0], data[0], at[0] + i * steps[0], value);
  }

 private:
  ScanLines(const Iteration<count>& rows, const View* const (&views)[count], int axis, bool backwards)
      : starts(rows), length(views[0]->dims[axis]) {
    lines = views[0]->numel / length;
    for (int k = 0; k < count; ++k) {
      std::int64_t stride = views[k]->strides[axis];
      auto size = static_cast<std::int64_t>(size_of(views[k]->dtype));
      dtypes[k] = views[k]->dtype;
      data[k] = static_cast<char*>(views[k]->data) + (backwards ? (length - 1) * stride * size : 0);
      steps[k] = backwards ? -stride : stride;
    }
    across = rows.dims[0] > 1 && std::abs(rows.strides[1][0]) < std::abs(steps[1]);
  }
};

// A law of scan.h with access to its elements: the state of one element, and the value written for a state.

template <class Number>
struct RunningSum : ScanLines<2> {
  using State = Number;
  REEL_DEVICE State nothing() const { return 0; }
  REEL_DEVICE State join(State a, State b) const { return a + b; }
  REEL_DEVICE State read(const std::int64_t (&at)[2], std::int64_t i) const { return number<Number>(1, at, i); }
  REEL_DEVICE void write(const std::int64_t (&at)[2], std::int64_t i, State sum) const { put(at, i, sum); }
};

struct RunningLogSum : ScanLines<2> {
  using State = double;
  REEL_DEVICE State nothing() const { return -HUGE_VAL; }
  REEL_DEVICE State join(State a, State b) const { return formulas::Logaddexp()(a, b); }
  REEL_DEVICE State read(const std::int64_t (&at)[2], std::int64_t i) const { return number<State>(1, at, i); }
  REEL_DEVICE void write(const std::int64_t (&at)[2], std::int64_t i, State sum) const { put(at, i, sum); }
};

// A product of integers, which wraps around.
struct RunningProduct : ScanLines<2> {
  using State = std::uint64_t;
  REEL_DEVICE State nothing() const { return 1; }
  REEL_DEVICE State join(State a, State b) const { return a * b; }
  REEL_DEVICE State read(const std::int64_t (&at)[2], std::int64_t i) const { return number<State>(1, at, i); }
  REEL_DEVICE void write(const std::int64_t (&at)[2], std::int64_t i, State product) const { put(at, i, product); }
};

// The product of finite numbers as number · 2^(500 powers), which stays finite whatever the order in which factors are
// joined.
struct ScaledProduct {
  double number;
  std::int64_t powers;

  static constexpr double step = 0x1p500;
  REEL_DEVICE static ScaledProduct of(double x) {
    ScaledProduct product{x, 0};
    if (x - x != 0 || x == 0) return product;
    for (; std::abs(product.number) > step; ++product.powers) product.number /= step;
    for (; std::abs(product.number) < 1 / step; --product.powers) product.number *= step;
    return product;
  }
  REEL_DEVICE ScaledProduct times(const ScaledProduct& other) const {
    ScaledProduct product = of(number * other.number);
    product.powers += powers + other.powers;
    return product;
  }
  REEL_DEVICE double value() const {
    double value = number;
    // More multiplications would overflow or underflow anyway.
    for (std::int64_t i = 0; i < 4 && i < powers; ++i) value *= step;
    for (std::int64_t i = 0; i < 4 && i < -powers; ++i) value /= step;
    return value;
  }
};

struct RunningScaledProduct : ScanLines<2> {
  using State = ScaledProduct;
  REEL_DEVICE State nothing() const { return {1, 0}; }
  REEL_DEVICE State join(const State& a, const State& b) const { return a.times(b); }
  REEL_DEVICE State read(const std::int64_t (&at)[2], std::int64_t i) const {
    return State::of(number<double>(1, at, i));
  }
  REEL_DEVICE void write(const std::int64_t (&at)[2], std::int64_t i, const State& product) const {
    put(at, i, product.value());
  }
};

// y → factor y + term
struct Step {
  double factor, term;
};

struct Recurrence : ScanLines<3> {
  using State = Step;
  REEL_DEVICE State nothing() const { return {1, 0}; }
  REEL_DEVICE State join(const State& a, const State& b) const {
    double factor = a.factor * b.factor;
    // A y of 0 stays 0 under any number of finite factors.
    constexpr double most = std::numeric_limits<double>::max();
    if (std::abs(factor) > most && std::abs(a.factor) <= most && std::abs(b.factor) <= most)
      factor = factor > 0 ? most : -most;
    return {factor, b.factor * a.term + b.term};
  }
  REEL_DEVICE State read(const std::int64_t (&at)[3], std::int64_t i) const {
    // The term before the first element is skipped, because 0 times a NaN factor would be NaN.
    return {i > 0 ? number<double>(1, at, i) : 0, number<double>(2, at, i)};
  }
  REEL_DEVICE void write(const std::int64_t (&at)[3], std::int64_t i, const State& state) const {
    put(at, i, state.term);
  }
};

// Lines are divided into parts if there are few: depending on shapes only.
struct Parts {
  std::int64_t count, length;
  Parts(std::int64_t whole, std::int64_t wanted, std::int64_t unit) {
    count = std::max<std::int64_t>(std::min(wanted, whole / unit), 1);
    length = ((whole + count - 1) / count + unit - 1) / unit * unit;
    count = (whole + length - 1) / length;
  }
  REEL_DEVICE std::int64_t begin(std::int64_t part) const { return part * length; }
  REEL_DEVICE std::int64_t end(std::int64_t part, std::int64_t whole) const {
    return (part + 1) * length < whole ? (part + 1) * length : whole;
  }
};

// One thread for each part of each line. `states` (parts, lines): the state before each part, or null for none; or
// receives the state of each part.
template <class Law, int operands, bool writes>
struct ScanPartsByThread {
  Law law;
  Parts parts;
  typename Law::State* states;

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t part = i / law.lines, at[operands];
    law.find(i % law.lines, at);
    typename Law::State state = law.nothing();
    if (writes && states) state = states[i];
    for (std::int64_t k = parts.begin(part); k < parts.end(part, law.length); ++k) {
      state = law.join(state, law.read(at, k));
      if constexpr (writes) law.write(at, k, state);
    }
    if constexpr (!writes) states[i] = state;
  }
};

// One group for each part of each line, which accesses adjacent elements together and keeps what each of its threads
// has read.
template <class Law, int operands, bool writes>
struct ScanParts {
  using State = typename Law::State;
  static constexpr int items = 4;
  Law law;
  Parts parts;
  State* states;

  static std::size_t shared_bytes(int threads) { return static_cast<std::size_t>(threads) * items * sizeof(State); }

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    std::int64_t part = group.index() / law.lines, at[operands];
    law.find(group.index() % law.lines, at);
    State carried = law.nothing();
    if (writes && states) carried = states[group.index()];
    int room = group.size() * items;
    State* tile = group.template shared<State>(room);
    auto before = group.template per_thread<State>();
    std::int64_t end = parts.end(part, law.length);
    for (std::int64_t start = parts.begin(part); start < end; start += room) {
      int count = static_cast<int>(end - start < room ? end - start : room);
      group.each([&](int thread) {
        for (int i = thread; i < count; i += group.size()) tile[i] = law.read(at, start + i);
      });
      group.each([&](int thread) {
        State own = law.nothing();
        for (int i = thread * items; i < (thread + 1) * items && i < count; ++i) own = law.join(own, tile[i]);
        before[thread] = own;
      });
      State whole = group.scan(before, law.nothing(), [&](const State& a, const State& b) { return law.join(a, b); });
      if constexpr (writes) {
        group.each([&](int thread) {
          State state = law.join(carried, before[thread]);
          for (int i = thread * items; i < (thread + 1) * items && i < count; ++i)
            tile[i] = state = law.join(state, tile[i]);
        });
        group.each([&](int thread) {
          for (int i = thread; i < count; i += group.size()) law.write(at, start + i, tile[i]);
        });
      }
      carried = law.join(carried, whole);
    }
    if constexpr (!writes)
      group.each([&](int thread) {
        if (thread == 0) states[group.index()] = carried;
      });
  }
};

template <int operands, class Law>
void run_by_threads(const Law& law) {
  Parts parts(law.length, std::int64_t{32768} / law.lines, 32);
  std::int64_t tasks = law.lines * parts.count;
  if (parts.count == 1) return for_each(tasks, ScanPartsByThread<Law, operands, true>{law, parts, nullptr});
  Scratch scratch(static_cast<std::size_t>(tasks) * sizeof(typename Law::State));
  auto* states = scratch.as<typename Law::State>();
  for_each(tasks, ScanPartsByThread<Law, operands, false>{law, parts, states});
  join_before(law, states, parts.count, law.lines);
  for_each(tasks, ScanPartsByThread<Law, operands, true>{law, parts, states});
}

template <int operands, class Law>
void run_by_groups(const Law& law) {
  using Writing = ScanParts<Law, operands, true>;
  using Reading = ScanParts<Law, operands, false>;
  int threads = law.length <= 256 ? warp_size : law.length <= 2048 ? 128 : 256;
  std::size_t shared_bytes = Writing::shared_bytes(threads);
  Parts parts(law.length, std::int64_t{512} / law.lines, 8192);
  std::int64_t tasks = law.lines * parts.count;
  if (parts.count == 1) return for_each_group(tasks, threads, shared_bytes, Writing{law, parts, nullptr});
  Scratch scratch(static_cast<std::size_t>(tasks) * sizeof(typename Law::State));
  auto* states = scratch.as<typename Law::State>();
  for_each_block(tasks, threads, shared_bytes, Reading{law, parts, states});
  join_before(law, states, parts.count, law.lines);
  for_each_block(tasks, threads, shared_bytes, Writing{law, parts, states});
}

template <int operands, class Law>
void run(const Law& law) {
  if (law.across || law.length <= 16)
    run_by_threads<operands>(law);
  else
    run_by_groups<operands>(law);
}

void cumsum(const View& out, const View& x, int axis, bool backwards) {
  if (out.numel == 0) return;
  ScanLines<2> lines({&out, &x}, axis, backwards);
  if (is_floating(x.dtype))
    run<2>(RunningSum<double>{lines});
  else
    run<2>(RunningSum<std::uint64_t>{lines});
}

void cumprod(const View& out, const View& x, int axis, bool backwards) {
  if (out.numel == 0) return;
  ScanLines<2> lines({&out, &x}, axis, backwards);
  if (is_floating(x.dtype))
    run<2>(RunningScaledProduct{lines});
  else
    run<2>(RunningProduct{lines});
}

void logcumsumexp(const View& out, const View& x, int axis) {
  if (out.numel == 0) return;
  run<2>(RunningLogSum{ScanLines<2>({&out, &x}, axis, false)});
}

void recurrence(const View& out, const View& a, const View& b, int axis, bool backwards) {
  if (out.numel == 0) return;
  run<3>(Recurrence{ScanLines<3>({&out, &a, &b}, axis, backwards)});
}

}  // namespace

void fill_scan(KernelTable& table) {
  table.cumsum = cumsum;
  table.cumprod = cumprod;
  table.logcumsumexp = logcumsumexp;
  table.recurrence = recurrence;
}

}  // namespace reel::detail::inline REEL_TARGET
