#include <algorithm>
#include <limits>

#include <reel/ops.h>

#include "../../../ops/if_needed.h"
#include "run.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

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

std::span<const Runner> shape_runners() {
  static constexpr Runner table[] = {
      {"Shape", run_shape},   {"Reshape", run_reshape}, {"Expand", run_expand},   {"Transpose", run_transpose},
      {"Slice", run_slice},   {"Split", run_split},     {"Squeeze", run_squeeze}, {"Unsqueeze", run_unsqueeze},
      {"Concat", run_concat}, {"Pad", run_pad},         {"Range", run_range},     {"OneHot", run_one_hot},
      {"Trilu", run_trilu},
  };
  return table;
}

}  // namespace reel::io::onnx
