#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <reel/indexing.h>

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

}  // namespace

std::span<const Operator> shape_operators() {
  static constexpr Operator table[] = {
      {"reshape", write_reshape}, {"permute", write_permute}, {"expand", write_expand}, {"slice", write_slice},
      {"split", write_split},     {"flip", write_flip},       {"index", write_index},   {"concat", write_concat},
      {"stack", write_stack},     {"pad", write_pad},         {"full", write_full},     {"arange", write_arange},
      {"one_hot", write_one_hot}, {"band", write_band},       {"diag", write_diag},
  };
  return table;
}

}  // namespace reel::io::onnx
