#include <reel/ops.h>

#include "../../../ops/index/attributes.h"
#include "operators.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

void write_take(Writer& w) {
  w.result(w.node("Gather", {w.in(0), w.in(1)}, {attribute("axis", w.attributes<AxisAttributes>().axis)}));
}

// ONNX wants x's other axes not to be larger than the index's in some runtimes: x is cut to them.
void write_gather(Writer& w) {
  int axis = static_cast<int>(w.attributes<AxisAttributes>().axis);
  std::string x = w.in(0);
  for (int i = 0; i < w.tensor(0).rank(); ++i)
    if (i != axis && w.in_size(0, i) != w.in_size(1, i))
      x = w.node("Slice", {x, w.integers({0}), w.size(w.in_size(1, i)), w.integers({i})});
  w.result(w.node("GatherElements", {x, w.in(1)}, {attribute("axis", std::int64_t{axis})}));
}

// x, index, source of one element or of the index's shape or larger.
template <bool adds>
void write_scatter(Writer& w) {
  std::int64_t axis = w.attributes<AxisAttributes>().axis;
  std::string source = w.in(2);
  bool repeats = w.tensor(2).rank() == 0;
  if (repeats) source = w.node("Expand", {source, w.sizes(w.in_shape(1))});
  for (int i = 0; !repeats && i < w.tensor(1).rank(); ++i)
    if (w.in_size(1, i) != w.in_size(2, i))
      source = w.node("Slice", {source, w.integers({0}), w.size(w.in_size(1, i)), w.integers({i})});
  w.result(w.node("ScatterElements", {w.in(0), w.in(1), source},
                  {attribute("axis", axis), attribute("reduction", adds ? "add" : "none")}));
}

// ScatterND takes rows along axis 0, from indices with one more axis.
std::string scattered_rows(Writer& w, const std::string& x, std::size_t index, const std::string& rows, bool adds) {
  std::string at = w.node("Unsqueeze", {w.in_as(index, i64), w.integers({-1})});
  return w.node("ScatterND", {x, at, rows}, {attribute("reduction", adds ? "add" : "none")});
}

void write_index_add(Writer& w) {
  auto axis = w.attributes<AxisAttributes>().axis;
  std::string x = w.in(0), rows = w.in(2);
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < w.tensor(0).rank(); ++i) order.push_back(i);
  std::swap(order[0], order[static_cast<std::size_t>(axis)]);
  if (axis != 0) x = w.transposed(x, order), rows = w.transposed(rows, order);
  std::string y = scattered_rows(w, x, 1, rows, true);
  w.result(axis != 0 ? w.transposed(y, order) : y);
}

void write_segment_sum(Writer& w) {
  std::string nothing = w.node("Expand", {w.scalar(0, w.out().dtype()), w.sizes(w.out_shape())});
  w.result(scattered_rows(w, nothing, 1, w.in(0), true));
}

void write_index_put(Writer& w) {
  std::vector<Numbers> shape = w.in_shape(1);
  for (int axis = 1; axis < w.tensor(0).rank(); ++axis) shape.push_back(w.in_size(0, axis));
  std::string rows = w.in_shape(2) == shape ? w.in(2) : w.node("Expand", {w.in(2), w.sizes(shape)});
  w.result(scattered_rows(w, w.in(0), 1, rows, w.attributes<PutAttributes>().accumulate != 0));
}

// The result of the op: it was computed by the ops before it, as input 3.
void write_scatter_reduce(Writer& w) { w.result(w.node("Identity", {w.in(3)})); }

Results run_gather(const NodeCall& c) {
  return {take(c.first(), c.in(1), c.axis(c.integer("axis", 0), c.in(0).rank()))};
}

Results run_gather_elements(const NodeCall& c) {
  return {gather(c.first(), c.axis(c.integer("axis", 0), c.in(0).rank()), c.in(1))};
}

bool adds(const NodeCall& c) {
  std::string reduction = c.text("reduction", "none");
  if (reduction != "none" && reduction != "add") c.refuse("its reduction is neither 'none' nor 'add'");
  return reduction == "add";
}

Results run_scatter_elements(const NodeCall& c) {
  int axis = c.axis(c.integer("axis", 0), c.in(0).rank());
  return {adds(c) ? scatter_add(c.first(), axis, c.in(1), c.in(2)) : scatter(c.first(), axis, c.in(1), c.in(2))};
}

// Indices (…, 1) of rows.
Results run_scatter_nd(const NodeCall& c) {
  const Tensor& indices = c.in(1);
  if (indices.rank() == 0 || indices.size(-1) != 1) c.refuse("reel runs ScatterND on rows of axis 0 only");
  Tensor rows = squeeze(Arg(indices, c.where()), -1);
  return {index_put(c.first(), std::vector<Tensor>{rows}, c.in(2), {.accumulate = adds(c)})};
}

}  // namespace

std::span<const Operator> index_operators() {
  static constexpr Operator table[] = {
      {"take index_select embedding", "Gather", run_gather, write_take},
      {"gather", "GatherElements", run_gather_elements, write_gather},
      {"scatter", "ScatterElements", run_scatter_elements, write_scatter<false>},
      {.ops = "scatter_add", .write = write_scatter<true>},
      {"index_put", "ScatterND", run_scatter_nd, write_index_put},
      {.ops = "index_add", .write = write_index_add},
      {.ops = "segment_sum", .write = write_segment_sum},
      {.ops = "scatter_reduce", .write = write_scatter_reduce},
  };
  return table;
}

}  // namespace reel::io::onnx
