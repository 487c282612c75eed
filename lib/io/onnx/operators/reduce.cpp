#include <cmath>
#include <numeric>

#include <reel/ops.h>

#include "../../../ops/if_needed.h"
#include "../../../ops/reduce/attributes.h"
#include "operators.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

// The axes that a reduction reduces: they have size 1 in its result. Axes that have size 1 before, too, may be among them.
std::vector<std::int64_t> reduced_axes(Writer& w) {
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < w.tensor(0).rank(); ++axis)
    if (w.in_size(0, axis) != w.out_size(0, axis)) axes.push_back(axis);
  // An axis of size 1 is as good as none.
  for (int axis = 0; axes.empty() && axis < w.tensor(0).rank(); ++axis)
    if (w.in_size(0, axis) == Numbers(w.run_count(), 1)) axes.push_back(axis);
  return axes;
}

bool is_empty(Writer& w) { return w.tensor(0).numel() == 0; }

// Reduces x, of the shape of input 0, and keeps the axes. ONNX treats no axes as all, so that an axis is added for it.
std::string reduced(Writer& w, const char* type, const std::string& x) {
  std::vector<std::int64_t> axes = reduced_axes(w);
  bool sums = std::string_view(type) == "ReduceSum", adds_axis = axes.empty();
  std::string from = x;
  if (adds_axis) {
    axes = {w.tensor(0).rank()};
    from = w.node("Unsqueeze", {x, w.integers(axes)});
  }
  auto keeps = attribute("keepdims", std::int64_t{adds_axis ? 0 : 1});
  return sums ? w.node(type, {from, w.integers(axes)}, {keeps})
              : w.node(type, {from}, {attribute("axes", axes), keeps});
}

void refuse_empty(Writer& w) {
  if (is_empty(w)) w.refuse("its operand has no elements");
}

void write_sum(Writer& w) { w.result(reduced(w, "ReduceSum", w.in_as(0, w.out().dtype()))); }
void write_prod(Writer& w) {
  refuse_empty(w);
  w.result(reduced(w, "ReduceProd", w.in_as(0, w.out().dtype())));
}
template <bool largest>
void write_extreme_of(Writer& w) {
  refuse_empty(w);
  DType dtype = w.tensor(0).dtype();
  std::string x = dtype == boolean ? w.cast(w.in(0), i32) : w.in(0);
  std::string y = reduced(w, largest ? "ReduceMax" : "ReduceMin", x);
  w.result(dtype == boolean ? w.cast(y, boolean) : y);
}
template <bool any>
void write_truth(Writer& w) {
  refuse_empty(w);
  std::string x = w.tensor(0).dtype() == boolean ? w.in(0) : w.cast(w.in(0), boolean);
  w.result(w.cast(reduced(w, any ? "ReduceMax" : "ReduceMin", w.cast(x, i32)), boolean));
}

template <bool largest>
void write_arg_extreme(Writer& w) {
  std::vector<std::int64_t> axes = reduced_axes(w);
  if (axes.size() > 1) w.refuse("it reduces several axes");
  std::string x = w.in(0);
  bool adds_axis = axes.empty();
  if (adds_axis) {
    axes = {w.tensor(0).rank()};
    x = w.node("Unsqueeze", {x, w.integers(axes)});
  }
  if (w.tensor(0).dtype() == boolean) x = w.cast(x, i32);
  w.result(w.node(largest ? "ArgMax" : "ArgMin", {x},
                  {attribute("axis", axes[0]), attribute("keepdims", std::int64_t{adds_axis ? 0 : 1})}));
}

// Σ (x − mean)² / divisor. The divisor is a number: where it follows from a size, it is counted in the graph.
template <bool root>
void write_variance(Writer& w) {
  refuse_empty(w);
  DType dtype = w.tensor(0).dtype();
  std::vector<std::int64_t> axes = reduced_axes(w);
  std::string x = w.in(0);
  std::string mean =
      axes.empty() ? x : w.node("ReduceMean", {x}, {attribute("axes", axes), attribute("keepdims", std::int64_t{1})});
  std::string apart = w.node("Sub", {x, mean});
  std::string sum = reduced(w, "ReduceSum", w.node("Mul", {apart, apart}));
  std::string divisor = w.number([&](std::size_t run) { return w.attributes<VarianceAttributes>(run).divisor; }, dtype);
  std::string y = w.node("Div", {sum, divisor});
  w.result(root ? w.node("Sqrt", {y}) : y);
}

void write_norm(Writer& w) {
  refuse_empty(w);
  double p = w.attributes<NormAttributes>().p;
  DType dtype = w.tensor(0).dtype();
  std::string size = w.node("Abs", {w.in(0)});
  if (p == 1) return w.result(reduced(w, "ReduceSum", size));
  if (std::isinf(p)) return w.result(reduced(w, p > 0 ? "ReduceMax" : "ReduceMin", size));
  if (p == 0) {
    std::string nonzero = w.node("Not", {w.node("Equal", {size, w.scalar(0, dtype)})});
    return w.result(reduced(w, "ReduceSum", w.cast(nonzero, dtype)));
  }
  if (p == 2) return w.result(w.node("Sqrt", {reduced(w, "ReduceSum", w.node("Mul", {w.in(0), w.in(0)}))}));
  std::string sum = reduced(w, "ReduceSum", w.node("Pow", {size, w.scalar(p, dtype)}));
  w.result(w.node("Pow", {sum, w.scalar(1 / p, dtype)}));
}

void write_logsumexp(Writer& w) {
  refuse_empty(w);
  w.result(reduced(w, "ReduceLogSumExp", w.in(0)));
}

void write_cumsum(Writer& w) {
  const auto& at = w.attributes<ScanAttributes>();
  DType dtype = w.out().dtype();
  w.result(w.node("CumSum", {w.in_as(0, dtype), w.integer(at.axis)}, {attribute("reverse", at.backwards)}));
}

// In steps, each of which doubles the length of the ranges that end at each element. The outputs are those of TopK.
template <bool largest>
void write_running_extreme(Writer& w) {
  std::int64_t axis = w.attributes<OrderAttributes>().axis;
  std::int64_t size = w.fixed(w.in_size(0, static_cast<int>(axis)), "the number of its steps");
  DType dtype = w.tensor(0).dtype();
  std::vector<std::int64_t> order(static_cast<std::size_t>(size)),
      beside(static_cast<std::size_t>(w.tensor(0).rank()), 1);
  std::iota(order.begin(), order.end(), 0);
  beside[static_cast<std::size_t>(axis)] = size;
  std::string places = w.node("Reshape", {w.integers(order), w.integers(beside)});
  std::string indices = w.node("Expand", {places, w.sizes(w.out_shape())});
  std::string values = dtype == boolean ? w.cast(w.in(0), i32) : w.in(0);
  for (std::int64_t step = 1; step < size; step *= 2) {
    auto part = [&](const std::string& x, std::int64_t start, std::int64_t stop) {
      return w.sliced(x, static_cast<int>(axis), start, stop);
    };
    std::string later = part(values, step, size);
    std::string wins = w.node(largest ? "GreaterOrEqual" : "LessOrEqual", {later, part(values, 0, size - step)});
    if (is_floating(dtype)) wins = w.node("Or", {w.node("IsNaN", {later}), wins});
    for (std::string* x : {&values, &indices}) {
      std::string better = w.node("Where", {wins, part(*x, step, size), part(*x, 0, size - step)});
      *x = w.node("Concat", {part(*x, 0, step), better}, {attribute("axis", axis)});
    }
  }
  w.result(1, dtype == boolean ? w.cast(values, boolean) : values);
  w.result(0, indices);
}

// Output 0 holds the indices and output 1 the values.
void write_topk(Writer& w) {
  const auto& at = w.attributes<OrderAttributes>();
  int axis = static_cast<int>(at.axis);
  if (w.tensor(0).dtype() == boolean || w.tensor(0).dtype() == u8) w.refuse("its operand has no dtype that TopK takes");
  Names found =
      w.nodes("TopK", {w.in(0), w.size(w.out_size(0, axis))}, 2,
              {attribute("axis", at.axis), attribute("largest", at.descending), attribute("sorted", std::int64_t{1})});
  w.result(1, found[0]);
  w.result(0, found[1]);
}

Shape axes_of(const NodeCall& c, std::vector<std::int64_t> axes) {
  int rank = c.in(0).rank();
  if (axes.empty())
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  if (axes.size() > static_cast<std::size_t>(max_rank)) c.refuse("it reduces more than 8 axes");
  return Shape(std::span(axes.data(), axes.size()));
}

using Reduce = Tensor (*)(const Arg&, const Axes&, ReduceOptions);

template <Reduce reduce>
Results run_reduction(const NodeCall& c) {
  Tensor y = reduce(c.first(), axes_of(c, c.integers("axes")), {.keepdims = c.integer("keepdims", 1) != 0});
  return {to_if_needed(Arg(y, c.where()), c.in(0).dtype())};
}

Results run_sum(const NodeCall& c) {
  std::vector<std::int64_t> axes = c.has(1) ? c.list(1) : std::vector<std::int64_t>();
  if (axes.empty() && c.integer("noop_with_empty_axes", 0) != 0) return {c.in(0)};
  Tensor y = sum(c.first(), axes_of(c, axes), {.keepdims = c.integer("keepdims", 1) != 0});
  return {to_if_needed(Arg(y, c.where()), c.in(0).dtype())};
}

template <bool largest>
Results run_arg(const NodeCall& c) {
  if (c.integer("select_last_index", 0) != 0) c.refuse("it selects the last of equal elements");
  int axis = c.axis(c.integer("axis", 0), c.in(0).rank());
  ReduceOptions options{.keepdims = c.integer("keepdims", 1) != 0};
  return {largest ? argmax(c.first(), axis, options) : argmin(c.first(), axis, options)};
}

Results run_cumsum(const NodeCall& c) {
  if (c.integer("exclusive", 0) != 0) c.refuse("it leaves out each element itself");
  int axis = c.axis(c.scalar_of(1), c.in(0).rank());
  bool reverse = c.integer("reverse", 0) != 0;
  Tensor x = reverse ? flip(c.first(), axis) : c.in(0);
  Tensor y = cumsum(Arg(x, c.where()), axis);
  if (reverse) y = flip(Arg(y, c.where()), axis);
  return {to_if_needed(Arg(y, c.where()), c.in(0).dtype())};
}

Results run_topk(const NodeCall& c) {
  int axis = c.axis(c.integer("axis", -1), c.in(0).rank());
  auto [values, indices] = topk(c.first(), c.scalar_of(1), axis, {.largest = c.integer("largest", 1) != 0});
  return {values, indices};
}

}  // namespace

std::span<const Operator> reduce_operators() {
  static constexpr Operator table[] = {
      {"sum", "ReduceSum", run_sum, write_sum},
      {"prod", "ReduceProd", run_reduction<static_cast<Reduce>(reel::prod)>, write_prod},
      {"max", "ReduceMax", run_reduction<static_cast<Reduce>(reel::max)>, write_extreme_of<true>},
      {"min", "ReduceMin", run_reduction<static_cast<Reduce>(reel::min)>, write_extreme_of<false>},
      {.ops = "any", .write = write_truth<true>},
      {.ops = "all", .write = write_truth<false>},
      {"argmax", "ArgMax", run_arg<true>, write_arg_extreme<true>},
      {"argmin", "ArgMin", run_arg<false>, write_arg_extreme<false>},
      {.ops = "var", .write = write_variance<false>},
      {.ops = "std", .write = write_variance<true>},
      {.ops = "norm", .write = write_norm},
      {"logsumexp", "ReduceLogSumExp", run_reduction<static_cast<Reduce>(reel::logsumexp)>, write_logsumexp},
      {"cumsum", "CumSum", run_cumsum, write_cumsum},
      {"sort topk", "TopK", run_topk, write_topk},
      {.ops = "cummax", .write = write_running_extreme<true>},
      {.ops = "cummin", .write = write_running_extreme<false>},
      // A part of variances and norms; reel records a mean as a sum and a quotient.
      {.type = "ReduceMean", .run = run_reduction<static_cast<Reduce>(reel::mean)>},
  };
  return table;
}

}  // namespace reel::io::onnx
