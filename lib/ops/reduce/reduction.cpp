#include "reduction.h"

#include <reel/ops/shape.h>

#include "../../core/op_error.h"

namespace reel::detail {

AxisSet axis_set(const char* op, const Tensor& x, const Axes& axes, Location where) {
  const Shape* list = axes.list();
  if (!list) return (1u << x.rank()) - 1;
  AxisSet set = 0;
  for (std::int64_t axis : *list) {
    AxisSet bit = 1u << check_axis(op, axis, x, where);
    if (set & bit)
      fail<ShapeError>(op, where, "axis {} is named twice in {}, for {}", axis, to_string(*list), describe(x));
    set |= bit;
  }
  return set;
}

Shape kept_shape(const Tensor& x, AxisSet axes) {
  Shape shape = x.shape();
  for (int i = 0; i < shape.rank(); ++i)
    if (axes >> i & 1) shape[i] = 1;
  return shape;
}

double count_along(const Tensor& x, AxisSet axes) {
  double count = 1;
  for (int i = 0; i < x.rank(); ++i)
    if (axes >> i & 1) count *= static_cast<double>(x.body().dims[i]);
  return count;
}

Tensor without_axes(Tensor result, AxisSet axes, bool keepdims, Location where) {
  if (keepdims || axes == 0) return result;
  Shape shape;
  for (int i = 0; i < result.rank(); ++i)
    if (!(axes >> i & 1)) shape.push_back(result.body().dims[i]);
  return reshape(Arg(result, where), shape);
}

Tensor reduce_to_kept(const OpInfo& op, const Tensor& x, AxisSet axes, DType dtype, bool keepdims, Location where,
                      std::span<const std::byte> attributes) {
  Tensor kept = invoke(op, {&x}, {kept_shape(x, axes), dtype, x.device()}, where, attributes);
  return without_axes(std::move(kept), axes, keepdims, where);
}

void check_not_of_nothing(const char* op, const char* what, const Tensor& x, AxisSet axes, Location where) {
  if (x.numel() == 0 && kept_shape(x, axes).numel() != 0)
    fail<ShapeError>(op, where, "there is no {} of nothing: {}", what, describe(x));
}

AxisSet axes_between(const Shape& from, const Shape& kept) {
  AxisSet set = 0;
  for (int i = 0; i < from.rank(); ++i)
    if (from[i] != kept[i]) set |= 1u << i;
  return set;
}

namespace {

// The order of axes with those of the set at the end.
Shape order_with_last(int rank, AxisSet axes) {
  Shape order;
  for (bool last : {false, true})
    for (int i = 0; i < rank; ++i)
      if ((axes >> i & 1) == last) order.push_back(i);
  return order;
}

}  // namespace

Tensor join_axes(const Tensor& x, AxisSet axes) {
  Shape shape;
  std::int64_t joined = 1;
  for (int i = 0; i < x.rank(); ++i) {
    if (axes >> i & 1)
      joined *= x.body().dims[i];
    else
      shape.push_back(x.body().dims[i]);
  }
  shape.push_back(joined);
  return reshape(permute(x, order_with_last(x.rank(), axes)), shape);
}

Tensor split_axes(const Tensor& joined, const Shape& shape, AxisSet axes) {
  Shape order = order_with_last(shape.rank(), axes), permuted = order, back = order;
  for (int i = 0; i < order.rank(); ++i) {
    permuted[i] = shape[static_cast<int>(order[i])];
    back[static_cast<int>(order[i])] = i;
  }
  return permute(reshape(joined, permuted), back);
}

}  // namespace reel::detail
