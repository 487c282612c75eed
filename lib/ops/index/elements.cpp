#include <reel/indexing.h>

#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/shape.h>

#include <memory>
#include <vector>

#include "../../core/memory_error.h"
#include "../../core/op_error.h"
#include "../if_needed.h"
#include "../operand.h"
#include "assign_part.h"
#include "index_checks.h"

// x(…) with masks and tensors of indices. A view of x is made of the other indices; the tensors are combined into one
// index of the axes that they take, which are merged.

namespace reel {

using namespace detail;

struct detail::Selection {
  Shape shape;        ///< of the view, with the axes of each mask merged
  Shape axes;         ///< the indexed axes of that shape, in ascending order
  Shape selected;     ///< the shape of the result
  Tensor rows;        ///< indices of the indexed axes, merged into one
  Tensor mask;        ///< the mask, if it is the only tensor; else undefined
  int mask_axis = 0;  ///< the axis of the view where the mask begins

  bool is_adjacent() const { return axes[-1] - axes[0] + 1 == axes.rank(); }
  /// The axis of the result where those of the indices begin.
  int place() const { return is_adjacent() ? static_cast<int>(axes[0]) : 0; }
  /// The axes of `shape`, those that are indexed first.
  Shape indexed_first() const {
    Shape order = axes;
    for (int axis = 0, k = 0; axis < shape.rank(); ++axis) {
      if (k < axes.rank() && axes[k] == axis)
        ++k;
      else
        order.push_back(axis);
    }
    return order;
  }
};

namespace {

constexpr const char* index_name = "index";

bool is_whole(const Tensor& x, const AxisParts& parts) {
  for (int i = 0; i < parts.count; ++i) {
    const AxisPart& part = parts.parts[i];
    if (part.kind != AxisPart::range || part.count != x.body().dims[i] || part.step != 1) return false;
  }
  return true;
}

Shape ascending(int rank) {
  Shape axes;
  for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

Tensor permuted(const Tensor& x, const Shape& axes) { return axes == ascending(x.rank()) ? x : permute(x, axes); }

Tensor reshaped(const Tensor& x, const Shape& shape) { return x.shape() == shape ? x : reshape(x, shape); }

Shape inverse_of(const Shape& axes) {
  Shape inverse = axes;
  for (int i = 0; i < axes.rank(); ++i) inverse[static_cast<int>(axes[i])] = i;
  return inverse;
}

// The shape of x after its first `count` axes are merged.
Shape merged_shape(const Tensor& x, int count) {
  Shape shape{1};
  for (int i = 0; i < count; ++i) shape[0] *= x.body().dims[i];
  for (int i = count; i < x.rank(); ++i) shape.push_back(x.body().dims[i]);
  return shape;
}

// The order of axes that moves the first `count` behind the next `place` ones.
Shape moved_back(int rank, int count, int place) {
  Shape order;
  for (int i = 0; i < place; ++i) order.push_back(count + i);
  for (int i = 0; i < count; ++i) order.push_back(i);
  for (int i = place + count; i < rank; ++i) order.push_back(i);
  return order;
}

Selection selection_of(const Tensor& x, const Tensor& view, std::span<const AxisIndices> indices, Location where) {
  Selection found;
  std::vector<Tensor> tensors;
  int axis = 0;
  for (const auto& [tensor, begin] : indices) {
    check_same_device(index_name, x, *tensor, where);
    while (axis < begin) found.shape.push_back(view.body().dims[axis++]);
    found.axes.push_back(found.shape.rank());
    if (tensor->dtype() != DType::boolean) {
      if (tensor->dtype() != DType::i32 && tensor->dtype() != DType::i64)
        fail<DTypeError>(index_name, where, "an index tensor is bool, i32 or i64, not {}", describe(*tensor));
      tensors.push_back(*tensor);
      found.shape.push_back(view.body().dims[axis++]);
      continue;
    }
    tensors.push_back(reshape(nonzero(reshape(*tensor, {-1})), {-1}));
    found.shape.push_back(tensor->numel());
    axis += tensor->rank() == 0 ? 1 : tensor->rank();
    if (indices.size() == 1) {
      found.mask = *tensor;
      found.mask_axis = begin;
    }
  }
  while (axis < view.rank()) found.shape.push_back(view.body().dims[axis++]);

  Tensor merged = permuted(reshaped(view, found.shape), found.indexed_first());
  found.rows = merged_index(index_name, merged, tensors, where);
  int count = found.axes.rank(), others = found.shape.rank() - count;
  if (others + found.rows.rank() > max_rank)
    fail<ShapeError>(index_name, where, "the indices make {} axes of {}: there can be 8", others + found.rows.rank(),
                     describe(x));
  for (int i = 0; i < found.shape.rank(); ++i) {
    if (i == found.place() && found.is_adjacent())
      for (std::int64_t size : found.rows.shape()) found.selected.push_back(size);
    bool is_indexed = false;
    for (std::int64_t indexed : found.axes) is_indexed |= indexed == i;
    if (!is_indexed) found.selected.push_back(found.shape[i]);
  }
  if (!found.is_adjacent()) {
    Shape selected = found.rows.shape();
    for (std::int64_t size : found.selected) selected.push_back(size);
    found.selected = selected;
  }
  return found;
}

Tensor elements_of(const Tensor& view, const Selection& selection) {
  Tensor x = reshaped(view, selection.shape);
  int count = selection.axes.rank();
  if (count == 1) return take(x, selection.rows, static_cast<int>(selection.axes[0]));
  if (selection.is_adjacent()) {
    // The indexed axes are merged where they are, without a copy.
    Shape shape;
    for (int axis = 0; axis < x.rank(); ++axis) {
      bool joins = axis > selection.axes[0] && axis <= selection.axes[-1];
      if (joins)
        shape[-1] *= selection.shape[axis];
      else
        shape.push_back(selection.shape[axis]);
    }
    return take(reshape(x, shape), selection.rows, selection.place());
  }
  x = permuted(x, selection.indexed_first());
  return take(reshape(x, merged_shape(x, count)), selection.rows, 0);
}

// The view with a value, which broadcasts to the selected elements, in their place.
Tensor with_elements(const Tensor& view, const Selection& selection, const Tensor& value) {
  if (selection.mask.defined() && value.numel() == 1) {
    Shape shape = selection.mask.rank() == 0 ? Shape{1} : selection.mask.shape();
    while (selection.mask_axis + shape.rank() < view.rank()) shape.push_back(1);
    return where(reshape(selection.mask, shape), reshape(value, {}), view);
  }
  int count = selection.axes.rank(), index_rank = selection.rows.rank();
  Shape order = selection.indexed_first();
  Tensor x = permuted(reshaped(view, selection.shape), order), y = expand_if_needed(value, selection.selected);
  y = permuted(y, inverse_of(moved_back(y.rank(), index_rank, selection.place())));
  Tensor merged = count == 1 ? x : reshape(x, merged_shape(x, count));
  Tensor written = detail::index_put(index_name, merged, {&selection.rows, 1}, y, {});
  written = permuted(reshaped(written, x.shape()), inverse_of(order));
  return reshaped(written, view.shape());
}

}  // namespace

Indexed detail::select_elements(const Tensor& x, const AxisParts& parts, std::span<const AxisIndices> indices,
                                Location where) {
  return with_memory_error(index_name, where, [&]() -> Indexed {
    CallerScope caller(where);
    Tensor view = is_whole(x, parts) ? x : Tensor(view_part(x, parts, where));
    auto selection = std::make_shared<const Selection>(selection_of(x, view, indices, where));
    Tensor elements = elements_of(view, *selection);
    return {std::move(elements), x, parts, std::move(selection)};
  });
}

void detail::assign_elements(const char* op, const Indexed& part, const Arg& y) {
  with_memory_error(op, y.location(), [&] {
    Location where = y.location();
    const Tensor& x = part.base();
    const Selection& selection = *part.selection();
    OpScope caller(where, op);
    Operand number(op, y.is_tensor() ? Arg(x, where) : y, x.dtype(), Arg(x, where));
    const Tensor& given = y.is_tensor() ? tensor_of(op, y) : *number;
    check_same_device(op, x, given, where);
    Shape shape;
    if (!broadcast(selection.selected, given.shape(), shape) || shape != selection.selected)
      fail<ShapeError>(op, where, "y {} does not broadcast to x {}", to_string(given.shape()),
                       to_string(selection.selected));
    Tensor value = to_if_needed(given, x.dtype());
    Indexed view = view_part(x, part.parts(), where);
    assign_view(op, view, Arg(with_elements(view, selection, value), where));
  });
}

}  // namespace reel
