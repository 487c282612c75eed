#include <algorithm>
#include <limits>

#include <reel/indexing.h>
#include <reel/ops.h>

#include "../../../ops/if_needed.h"
#include "../../../ops/index/places.h"
#include "../../../ops/shape/attributes.h"
#include "../model_tensor.h"
#include "operators.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

constexpr std::int64_t beyond_all = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t before_all = std::numeric_limits<std::int64_t>::min();

void write_reshape(Writer& w) { w.result(w.reshape(w.in(0), w.out_shape())); }

void write_permute(Writer& w) {
  const Shape& axes = w.attributes<ShapeAttributes>().shape;
  w.result(w.transposed(w.in(0), {axes.begin(), axes.end()}));
}

void write_expand(Writer& w) {
  std::vector<Numbers> shape = w.out_shape();
  // Runtimes do not agree on what a size of 0 does in Expand.
  if (w.out().numel() == 0 && std::all_of(shape.begin(), shape.end(), is_constant))
    return w.result(w.constant(onnx_tensor({}, w.out())));
  w.result(w.node("Expand", {w.in(0), w.sizes(shape)}));
}

// The elements start, start + step, … of an axis, `count` of them, as the operator Slice; empty if that is all of them.
std::string sliced_part(Writer& w, const std::string& x, int axis, const Numbers& size, const Numbers& start,
                        const Numbers& count, std::int64_t step) {
  std::size_t runs = size.size();
  if (step == 1 && start == Numbers(runs, 0) && count == size) return x;
  Numbers stop(runs), from_end(runs);
  for (std::size_t run = 0; run < runs; ++run) {
    stop[run] = start[run] + count[run] * step;
    if (step < 0 && stop[run] < 0) stop[run] = before_all;
    from_end[run] = start[run] - size[run];
  }
  // A start or stop that is fixed from the end stays so at all sizes.
  auto place = [&](const Numbers& wanted) {
    if (is_constant(wanted)) return w.integers({wanted.front()});
    Numbers back(runs);
    for (std::size_t run = 0; run < runs; ++run) back[run] = wanted[run] - size[run];
    if (is_constant(back) && back.front() < 0) return w.integers({back.front()});
    if (step > 0 && &wanted == &stop && is_constant(back) && back.front() >= 0) return w.integers({beyond_all});
    return w.size(wanted);
  };
  return w.node("Slice", {x, place(start), place(stop), w.integers({axis}), w.integers({step})});
}

void write_slice(Writer& w) {
  const auto& first = w.attributes<SliceAttributes>(0);
  int axis = static_cast<int>(first.axis);
  auto of = [&](std::int64_t SliceAttributes::*member) {
    return w.numbers([&](std::size_t run) { return w.attributes<SliceAttributes>(run).*member; });
  };
  std::int64_t step = w.fixed(of(&SliceAttributes::step), "the step of the slice");
  std::string part =
      sliced_part(w, w.in(0), axis, w.in_size(0, axis), of(&SliceAttributes::start), of(&SliceAttributes::count), step);
  w.result(w.node("Identity", {part}));
}

void write_split(Writer& w) {
  auto numbers = [&](std::size_t run) { return reinterpret_cast<const std::int64_t*>(w.step(run).attributes.data()); };
  std::vector<Numbers> sizes;
  for (std::size_t i = 0; i < w.output_count(); ++i)
    sizes.push_back(w.numbers([&](std::size_t run) { return numbers(run)[i + 1]; }));
  Names parts = w.nodes("Split", {w.in(0), w.sizes(sizes)}, sizes.size(), {attribute("axis", numbers(0)[0])});
  for (std::size_t i = 0; i < parts.size(); ++i) w.result(i, parts[i]);
}

void write_flip(Writer& w) {
  std::vector<std::int64_t> starts, stops, axes, steps;
  for (int axis = 0; axis < w.tensor(0).rank(); ++axis) {
    if (!(w.attributes<FlipAttributes>().axes >> axis & 1)) continue;
    starts.push_back(-1);
    stops.push_back(before_all);
    axes.push_back(axis);
    steps.push_back(-1);
  }
  if (axes.empty()) return w.result(w.node("Identity", {w.in(0)}));
  w.result(w.node("Slice", {w.in(0), w.integers(starts), w.integers(stops), w.integers(axes), w.integers(steps)}));
}

// An index by integers and ranges: slices of axes, then the axes that are removed and added.
void write_index(Writer& w) {
  auto parts = [&](std::size_t run) { return reinterpret_cast<const AxisPart*>(w.step(run).attributes.data()); };
  std::size_t count = w.step().attributes.size() / sizeof(AxisPart);
  std::string x = w.in(0);
  std::vector<std::int64_t> removed, added;
  int axis = 0;
  std::int64_t place = 0;
  for (std::size_t i = 0; i < count; ++i) {
    auto of = [&](std::int64_t AxisPart::*member) {
      return w.numbers([&](std::size_t run) { return parts(run)[i].*member; });
    };
    std::int64_t kind = w.fixed(of(&AxisPart::kind), "the kind of an index");
    if (kind == AxisPart::added) {
      added.push_back(place++);
      continue;
    }
    Numbers one(w.run_count(), 1), size = w.in_size(0, axis);
    bool is_range = kind == AxisPart::range;
    std::int64_t step = is_range ? w.fixed(of(&AxisPart::step), "the step of a range") : 1;
    x = sliced_part(w, x, axis, size, of(&AxisPart::start), is_range ? of(&AxisPart::count) : one, step);
    if (is_range)
      ++place;
    else
      removed.push_back(axis);
    ++axis;
  }
  if (!removed.empty()) x = w.node("Squeeze", {x, w.integers(removed)});
  if (!added.empty()) x = w.node("Unsqueeze", {x, w.integers(added)});
  w.result(w.node("Identity", {x}));
}

void write_concat(Writer& w) {
  Names parts;
  for (std::size_t i = 0; i < w.input_count(); ++i) parts.push_back(w.in_as(i, w.out().dtype()));
  w.result(w.node("Concat", parts, {attribute("axis", w.attributes<AxisAttributes>().axis)}));
}

void write_stack(Writer& w) {
  std::int64_t axis = w.attributes<AxisAttributes>().axis;
  Names parts;
  for (std::size_t i = 0; i < w.input_count(); ++i)
    parts.push_back(w.node("Unsqueeze", {w.in_as(i, w.out().dtype()), w.integers({axis})}));
  w.result(w.node("Concat", parts, {attribute("axis", axis)}));
}

void write_pad(Writer& w) {
  std::vector<Numbers> widths;
  int rank = w.out().rank();
  if (rank == 0) return w.result(w.node("Identity", {w.in(0)}));
  for (int axis = 0; axis < rank; ++axis)
    widths.push_back(w.numbers([&](std::size_t run) { return w.attributes<PadAttributes>(run).before[axis]; }));
  for (int axis = 0; axis < rank; ++axis) {
    Numbers before = widths[static_cast<std::size_t>(axis)], from = w.in_size(0, axis), to = w.out_size(0, axis);
    widths.push_back(w.numbers([&](std::size_t run) { return to[run] - from[run] - before[run]; }));
  }
  std::string x = w.in(0);
  DType dtype = w.out().dtype();
  // ONNX's Pad takes bools, but runtimes do not.
  DType padded = dtype == boolean ? u8 : dtype;
  if (padded != dtype) x = w.cast(x, padded);
  std::string value = w.number([&](std::size_t run) { return w.attributes<PadAttributes>(run).value; }, padded);
  std::string y = w.node("Pad", {x, w.sizes(widths), value});
  w.result(padded != dtype ? w.cast(y, dtype) : y);
}

// A value in every element of a shape that depends on the named axes; other calls are constants.
void write_full(Writer& w) {
  DType dtype = w.out().dtype();
  Numbers integers = w.numbers([&](std::size_t run) { return w.attributes<FillAttributes>(run).integer; });
  std::string number =
      dtype == i64 && is_constant(integers)
          ? w.integer(integers.front())
          : w.number(
                [&](std::size_t run) -> double {
                  const auto& value = w.attributes<FillAttributes>(run);
                  return is_floating(dtype) ? static_cast<double>(value.number) : static_cast<double>(value.integer);
                },
                dtype);
  w.result(w.node("Expand", {number, w.sizes(w.out_shape())}));
}

void write_arange(Writer& w) {
  DType dtype = w.out().dtype();
  const auto& at = w.attributes<ArangeAttributes>(0);
  // 0, 1, … of the wanted count, times the step, plus the start.
  std::string count = w.node("Squeeze", {w.size(w.out_size(0, 0))});
  std::string steps = w.node("Range", {w.integer(0), count, w.integer(1)});
  Numbers starts = w.numbers([&](std::size_t run) { return w.attributes<ArangeAttributes>(run).integer_start; });
  if (is_floating(dtype)) {
    w.fixed(w.numbers([&](std::size_t run) {
      return static_cast<double>(w.attributes<ArangeAttributes>(run).start) == static_cast<double>(at.start) &&
             static_cast<double>(w.attributes<ArangeAttributes>(run).step) == static_cast<double>(at.step);
    }),
            "whether its start and step are those of the first call");
    std::string y = w.node("Mul", {w.cast(steps, dtype), w.scalar(at.step, dtype)});
    return w.result(w.node("Add", {y, w.scalar(at.start, dtype)}));
  }
  std::int64_t step =
      w.fixed(w.numbers([&](std::size_t run) { return w.attributes<ArangeAttributes>(run).integer_step; }), "its step");
  if (step != 1) steps = w.node("Mul", {steps, w.integers({step})});
  std::string y = w.node("Add", {steps, w.size(starts)});
  w.result(dtype == i64 ? y : w.cast(y, dtype));
}

void write_one_hot(Writer& w) {
  DType dtype = w.out().dtype();
  std::int64_t classes = w.fixed(w.out_size(0, w.out().rank() - 1), "the number of classes");
  std::string low = w.node("Unsqueeze", {w.scalar(0, dtype), w.integers({0})});
  std::string high = w.node("Unsqueeze", {w.scalar(1, dtype), w.integers({0})});
  std::string both = w.node("Concat", {low, high}, {attribute("axis", std::int64_t{0})});
  std::string indices = w.in_as(0, i64);
  bool is_scalar = w.tensor(0).rank() == 0;
  if (is_scalar) indices = w.node("Unsqueeze", {indices, w.integers({0})});
  std::string y = w.node("OneHot", {indices, w.integer(classes), both}, {attribute("axis", std::int64_t{-1})});
  w.result(is_scalar ? w.node("Squeeze", {y, w.integers({0})}) : y);
}

void write_band(Writer& w) {
  const auto& band = w.attributes<BandAttributes>();
  DType dtype = w.tensor(0).dtype();
  std::string x = w.in(0);
  bool converts = !is_floating(dtype) && dtype != i64;
  if (converts) x = w.cast(x, i64);
  if (band.low != before_all) x = w.node("Trilu", {x, w.integer(band.low)}, {attribute("upper", std::int64_t{1})});
  if (band.high != beyond_all) x = w.node("Trilu", {x, w.integer(band.high)}, {attribute("upper", std::int64_t{0})});
  w.result(converts ? w.cast(x, dtype) : w.node("Identity", {x}));
}

// Matrices with fixed sizes: their elements are taken from, or put into, rows of all elements.
void write_diag(Writer& w) {
  const auto& at = w.attributes<DiagonalAttributes>(0);
  std::int64_t row = at.diagonal < 0 ? -at.diagonal : 0, column = at.diagonal > 0 ? at.diagonal : 0;
  bool takes = w.tensor(0).rank() == w.out().rank() + 1;
  const Tensor& matrix = takes ? w.tensor(0) : w.out();
  int rank = matrix.rank();
  auto size_of_axis = [&](int axis) { return takes ? w.in_size(0, axis) : w.out_size(0, axis); };
  std::int64_t rows = w.fixed(size_of_axis(rank - 2), "the number of rows");
  std::int64_t columns = w.fixed(size_of_axis(rank - 1), "the number of columns");
  w.fixed(w.numbers([&](std::size_t run) { return w.attributes<DiagonalAttributes>(run).diagonal; }), "its diagonal");
  std::vector<std::int64_t> places;
  for (std::int64_t i = row, j = column; i < rows && j < columns; ++i, ++j) places.push_back(i * columns + j);
  std::vector<Numbers> leading;
  for (int axis = 0; axis + 2 < rank; ++axis) leading.push_back(size_of_axis(axis));
  std::vector<Numbers> flat = leading;
  flat.emplace_back(w.run_count(), rows * columns);
  if (takes)
    return w.result(
        w.node("Gather", {w.reshape(w.in(0), flat), w.integers(places)}, {attribute("axis", std::int64_t{rank - 2})}));
  std::vector<std::int64_t> sources(static_cast<std::size_t>(rows * columns), std::ssize(places));
  for (std::size_t i = 0; i < places.size(); ++i)
    sources[static_cast<std::size_t>(places[i])] = static_cast<std::int64_t>(i);
  // One more element, 0, for all places beside the diagonal.
  std::vector<std::int64_t> pads(static_cast<std::size_t>(2 * (rank - 1)));
  pads.back() = 1;
  std::string padded = w.node("Pad", {w.in(0), w.integers(pads), w.scalar(0, w.out().dtype())});
  std::string spread = w.node("Gather", {padded, w.integers(sources)}, {attribute("axis", std::int64_t{rank - 2})});
  w.result(w.reshape(spread, w.out_shape()));
}

Shape shape_list(const NodeCall& c, const std::vector<std::int64_t>& numbers) {
  if (numbers.size() > static_cast<std::size_t>(max_rank)) c.refuse("it names more than 8 axes");
  return Shape(std::span(numbers.data(), numbers.size()));
}

// The tensor of sizes stays on the CPU.
Results run_shape(const NodeCall& c) {
  Shape shape = c.in(0).shape();
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  auto rank = static_cast<std::int64_t>(sizes.size());
  auto place = [&](std::int64_t at) { return std::clamp(at < 0 ? at + rank : at, std::int64_t{0}, rank); };
  std::int64_t start = place(c.integer("start", 0)), stop = place(c.integer("end", rank));
  DeviceGuard here(cpu);
  if (stop <= start) return {zeros({0}, {.dtype = i64})};
  return {tensor(std::vector<std::int64_t>(sizes.begin() + start, sizes.begin() + stop))};
}

Results run_reshape(const NodeCall& c) {
  std::vector<std::int64_t> sizes = c.list(1);
  bool allows_zero = c.integer("allowzero", 0) != 0;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] == 0 && !allows_zero) {
      if (static_cast<int>(i) >= c.in(0).rank()) c.refuse("a size is to be that of an axis that its operand lacks");
      sizes[i] = c.in(0).size(static_cast<int>(i));
    }
  return {reshape(c.first(), shape_list(c, sizes))};
}

Results run_expand(const NodeCall& c) {
  Shape wanted = c.shape(c.list(1)), result;
  if (!broadcast(c.in(0).shape(), wanted, result)) c.refuse("the shapes do not broadcast");
  std::vector<std::int64_t> sizes(result.begin(), result.end());
  return {expand(c.first(), c.shape(sizes))};
}

Results run_transpose(const NodeCall& c) {
  std::vector<std::int64_t> order = c.integers("perm");
  if (!c.has_attribute("perm"))
    for (int axis = c.in(0).rank(); axis-- > 0;) order.push_back(axis);
  return {permute(c.first(), shape_list(c, order))};
}

Results run_slice(const NodeCall& c) {
  std::vector<std::int64_t> starts = c.list(1), stops = c.list(2), axes, steps(starts.size(), 1);
  if (c.has(3))
    axes = c.list(3);
  else
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (c.has(4)) steps = c.list(4);
  if (stops.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    c.refuse("its lists do not have one length");
  Tensor x = c.in(0);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    int axis = c.axis(axes[i], x.rank());
    if (steps[i] == 0) c.refuse("a step is 0");
    x = slice(Arg(x, c.where()), axis, starts[i], stops[i], steps[i]);
  }
  return {x};
}

Results run_split(const NodeCall& c) {
  int axis = c.axis(c.integer("axis", 0), c.in(0).rank());
  if (c.has(1)) {
    std::vector<std::int64_t> sizes = c.list(1);
    return split(c.first(), sizes, axis);
  }
  auto parts = static_cast<std::int64_t>(c.output_count());
  if (parts == 0 || c.in(0).size(axis) % parts != 0) c.refuse("its parts are not of one size");
  return chunk(c.first(), parts, axis);
}

Results run_squeeze(const NodeCall& c) {
  const Tensor& x = c.in(0);
  Shape shape;
  std::vector<bool> removed(static_cast<std::size_t>(x.rank()), !c.has(1));
  if (c.has(1))
    for (std::int64_t axis : c.list(1)) removed[static_cast<std::size_t>(c.axis(axis, x.rank()))] = true;
  for (int axis = 0; axis < x.rank(); ++axis) {
    bool drops = removed[static_cast<std::size_t>(axis)];
    if (drops && x.size(axis) != 1 && c.has(1)) c.refuse("an axis that is removed has not size 1");
    if (!drops || x.size(axis) != 1) shape.push_back(x.size(axis));
  }
  return {reshape(c.first(), shape)};
}

Results run_unsqueeze(const NodeCall& c) {
  const Tensor& x = c.in(0);
  std::vector<std::int64_t> axes = c.list(1);
  int rank = x.rank() + static_cast<int>(axes.size());
  if (rank > max_rank) c.refuse("its result would have more than 8 axes");
  std::vector<bool> added(static_cast<std::size_t>(rank));
  for (std::int64_t axis : axes) {
    auto place = static_cast<std::size_t>(c.axis(axis, rank));
    if (added[place]) c.refuse("an axis is added twice");
    added[place] = true;
  }
  Shape shape;
  int next = 0;
  for (bool is_new : added) shape.push_back(is_new ? 1 : x.size(next++));
  return {reshape(c.first(), shape)};
}

Results run_concat(const NodeCall& c) {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < c.input_count(); ++i) parts.push_back(c.in(i));
  if (parts.empty()) c.refuse("it has no operands");
  CallerScope caller(c.where());
  return {concat(parts, c.axis(c.integer("axis", 0), parts[0].rank()))};
}

Results run_pad(const NodeCall& c) {
  if (c.text("mode", "constant") != "constant") c.refuse("its mode is not 'constant'");
  const Tensor& x = c.in(0);
  std::vector<std::int64_t> widths = c.list(1), sizes;
  auto rank = static_cast<std::size_t>(x.rank());
  if (widths.size() != 2 * rank) c.refuse("there are not two widths for each axis");
  std::vector<PadWidth> all;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    std::int64_t size;
    if (__builtin_add_overflow(x.size(static_cast<int>(axis)), widths[axis], &size) ||
        __builtin_add_overflow(size, widths[axis + rank], &size))
      c.refuse("a width is too large");
    sizes.push_back(size);
    all.push_back({widths[axis], widths[axis + rank]});
  }
  static_cast<void>(c.shape(sizes));
  double value = c.has(2) ? to_if_needed(Arg(c.in(2), c.where()), f64).item<double>() : 0;
  return {pad(c.first(), all, {.value = value})};
}

Results run_range(const NodeCall& c) {
  if (c.in(0).dtype() != i64) c.refuse("reel runs Range on i64 only");
  std::int64_t start = c.scalar_of(0), stop = c.scalar_of(1), step = c.scalar_of(2);
  if (step == 0) c.refuse("its step is 0");
  std::int64_t distance;
  if (__builtin_sub_overflow(stop, start, &distance) || distance == std::numeric_limits<std::int64_t>::min())
    c.refuse("its range is too large");
  std::int64_t count =
      step > 0 ? (distance > 0 ? (distance - 1) / step + 1 : 0) : (distance < 0 ? (distance + 1) / step + 1 : 0);
  static_cast<void>(c.shape({count}));
  DeviceGuard here(cpu);
  return {add(mul(Arg(arange(count, {.dtype = i64}), c.where()), step), start)};
}

Results run_one_hot(const NodeCall& c) {
  if (c.integer("axis", -1) != -1) c.refuse("its axis is not the last");
  const Tensor &indices = c.in(0), &values = c.in(2);
  std::int64_t classes = c.scalar_of(1);
  if (values.numel() != 2 || classes < 1) c.refuse("its values or its depth do not fit");
  Shape shape = indices.shape();
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  sizes.push_back(classes);
  static_cast<void>(c.shape(sizes));
  Tensor flags = one_hot(c.first(), classes, boolean);
  return {where(Arg(flags, c.where()), select(values, 0, 1), select(values, 0, 0))};
}

Results run_trilu(const NodeCall& c) {
  std::int64_t diagonal = c.has(1) ? c.scalar_of(1) : 0;
  return {c.integer("upper", 1) != 0 ? triu(c.first(), diagonal) : tril(c.first(), diagonal)};
}

}  // namespace

std::span<const Operator> shape_operators() {
  static constexpr Operator table[] = {
      {"reshape", "Reshape", run_reshape, write_reshape},
      {"permute", "Transpose", run_transpose, write_permute},
      {"expand", "Expand", run_expand, write_expand},
      {"slice", "Slice", run_slice, write_slice},
      {"split", "Split", run_split, write_split},
      {.ops = "flip", .write = write_flip},
      {.ops = "index", .write = write_index},
      {"concat", "Concat", run_concat, write_concat},
      {.ops = "stack", .write = write_stack},
      {"pad", "Pad", run_pad, write_pad},
      {.ops = "full", .write = write_full},
      {"arange", "Range", run_range, write_arange},
      {"one_hot", "OneHot", run_one_hot, write_one_hot},
      {"band", "Trilu", run_trilu, write_band},
      {.ops = "diag", .write = write_diag},
      // Parts of sizes and of other ops; reel's own views of these kinds are recorded as reshape.
      {.type = "Shape", .run = run_shape},
      {.type = "Squeeze", .run = run_squeeze},
      {.type = "Unsqueeze", .run = run_unsqueeze},
  };
  return table;
}

}  // namespace reel::io::onnx
