#include <reel/ops/shape.h>

#include <algorithm>

#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../index/places.h"
#include "../joining.h"
#include "../registry.h"
#include "attributes.h"

namespace reel {

using namespace detail;

namespace {

// Computes the strides by which x's elements have another shape; returns false if there are none.
bool reshaped_strides(const Body& x, const Shape& shape, Shape& strides) {
  strides = contiguous_strides(shape);
  if (x.contiguous || x.numel == 0) return true;
  // Axes that can be merged form runs; each new axis must be within one.
  struct Run {
    std::int64_t size, step;
  };
  Run runs[max_rank];
  int count = 0;
  for (int i = x.rank; i-- > 0;) {
    if (x.dims[i] == 1) continue;
    if (count > 0 && x.strides[i] == runs[count - 1].size * runs[count - 1].step)
      runs[count - 1].size *= x.dims[i];
    else
      runs[count++] = {x.dims[i], x.strides[i]};
  }
  Run* run = runs;
  for (int i = shape.rank(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (run->size == 1) ++run;
    if (run->size % shape[i] != 0) return false;
    strides[i] = run->step;
    *run = {run->size / shape[i], run->step * shape[i]};
  }
  return true;
}

}  // namespace

// copy: y = x in row-major order;  dx = d

constexpr OpInfo copy_op{
    .name = "copy",
    .forward = [](Call& call) { kernels(call.output().device).copy(call.output(), call.input(0)); },
    .gradient = [](Gradient& g) { g.accumulate(0, g.output()); },
    // A copy is often made to be overwritten, so it must not share its elements with those of other calls.
    .joining = runs_alone,
};

Tensor copy(const Arg& x) {
  const Tensor& tensor = tensor_of("copy", x);
  return invoke(copy_op, {&tensor}, {tensor.body(), tensor.dtype()}, x.location());
}

Tensor contiguous(const Arg& x) {
  const Tensor& tensor = tensor_of("contiguous", x);
  return tensor.is_contiguous() ? reshape(x, tensor.shape()) : copy(x);
}

// reshape: the same elements;  dx = d in x's shape

constexpr OpInfo reshape_op{
    .name = "reshape",
    .forward =
        [](Call& call) {
          const Shape& shape = call.attributes<ShapeAttributes>().shape;
          Shape strides;
          reshaped_strides(call.input(0), shape, strides);
          call.outputs[0] = view_of(*call.inputs[0], shape, strides, 0, call.where);
        },
    .gradient = [](Gradient& g) { g.accumulate(0, reshape(g.output(), g.input_shape(0))); },
    .joining = [](const Call& call) -> Joining {
      if (std::max(call.input(0).rank, call.attributes<ShapeAttributes>().shape.rank()) == max_rank) return {};
      return {.by = Joining::By::stacked, .attributes = [](std::span<std::byte> attributes, std::int64_t count) {
                auto& shape = reinterpret_cast<ShapeAttributes*>(attributes.data())->shape;
                Shape stacked{count};
                for (std::int64_t size : shape) stacked.push_back(size);
                shape = stacked;
              }};
    },
};

namespace {

// The shape with its −1 computed. Throws: ShapeError unless it has as many elements as x.
Shape filled_in(const char* op, const Tensor& x, const Shape& shape, Location where) {
  Shape filled = shape;
  std::int64_t known = 1;
  bool overflow = false;
  int open = -1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1 && open < 0) {
      open = i;
    } else if (shape[i] < 0) {
      fail<ShapeError>(op, where, "the shape {} may have one size of -1, and no other negative one", to_string(shape));
    } else {
      overflow |= __builtin_mul_overflow(known, shape[i], &known);
    }
  }
  if (open >= 0 && known != 0 && x.numel() % known == 0) filled[open] = x.numel() / known;
  if (overflow || (open >= 0 ? filled[open] < 0 : known != x.numel()))
    fail<ShapeError>(op, where, "the {} elements of {} do not fill the shape {}", x.numel(), describe(x),
                     to_string(shape));
  return filled;
}

}  // namespace

Tensor reshape(const Arg& x, const Shape& shape) {
  const Tensor& tensor = tensor_of("reshape", x);
  ShapeAttributes attributes{filled_in("reshape", tensor, shape, x.location())};
  Shape strides;
  if (reshaped_strides(tensor.body(), attributes.shape, strides))
    return invoke_view(reshape_op, tensor, x.location(), bytes_of(attributes));
  return invoke_view(reshape_op, copy(x), x.location(), bytes_of(attributes));
}

Tensor view(const Arg& x, const Shape& shape) {
  const Tensor& tensor = tensor_of("view", x);
  ShapeAttributes attributes{filled_in("view", tensor, shape, x.location())};
  Shape strides;
  if (!reshaped_strides(tensor.body(), attributes.shape, strides))
    fail<ShapeError>("view", x.location(),
                     "the strides {} of {} do not allow the shape {} without a copy; use reshape, which copies then",
                     to_string(tensor.strides()), describe(tensor), to_string(shape));
  return invoke_view(reshape_op, tensor, x.location(), bytes_of(attributes));
}

Tensor flatten(const Arg& x, int first, int last) {
  const Tensor& tensor = tensor_of("flatten", x);
  if (tensor.rank() == 0 && (first == 0 || first == -1) && (last == 0 || last == -1)) return reshape(x, {1});
  int begin = check_axis("flatten", first, tensor, x.location());
  int end = check_axis("flatten", last, tensor, x.location());
  if (end < begin)
    fail<ShapeError>("flatten", x.location(), "the last axis {} lies before the first, {}, of {}", last, first,
                     describe(tensor));
  Shape shape;
  for (int i = 0; i < tensor.rank(); ++i) {
    std::int64_t size = tensor.body().dims[i];
    if (i <= begin || i > end)
      shape.push_back(size);
    else
      shape[-1] *= size;
  }
  return reshape(x, shape);
}

// permute: y's axis i is x's axis axes[i];  dx = d, permuted back

constexpr OpInfo permute_op{
    .name = "permute",
    .forward =
        [](Call& call) {
          const Shape& axes = call.attributes<ShapeAttributes>().shape;
          const Body& x = call.input(0);
          Shape shape = axes, strides = axes;
          for (int i = 0; i < axes.rank(); ++i) {
            shape[i] = x.dims[axes[i]];
            strides[i] = x.strides[axes[i]];
          }
          call.outputs[0] = view_of(*call.inputs[0], shape, strides, 0, call.where);
        },
    .gradient =
        [](Gradient& g) {
          const Shape& axes = g.attributes<ShapeAttributes>().shape;
          Shape back = axes;
          for (int i = 0; i < axes.rank(); ++i) back[static_cast<int>(axes[i])] = i;
          g.accumulate(0, permute(g.output(), back));
        },
    .joining = [](const Call& call) -> Joining {
      if (call.input(0).rank == max_rank) return {};
      return {.by = Joining::By::stacked, .attributes = [](std::span<std::byte> attributes, std::int64_t) {
                auto& axes = reinterpret_cast<ShapeAttributes*>(attributes.data())->shape;
                Shape stacked{0};
                for (std::int64_t axis : axes) stacked.push_back(axis + 1);
                axes = stacked;
              }};
    },
};

Tensor permute(const Arg& x, const Shape& axes) {
  const Tensor& tensor = tensor_of("permute", x);
  ShapeAttributes attributes{axes};
  unsigned seen = 0;
  for (std::int64_t& axis : attributes.shape) {
    axis = check_axis("permute", axis, tensor, x.location());
    seen |= 1u << axis;
  }
  if (axes.rank() != tensor.rank() || seen != (1u << tensor.rank()) - 1)
    fail<ShapeError>("permute", x.location(), "the axes {} are no permutation of those of {}", to_string(axes),
                     describe(tensor));
  return invoke_view(permute_op, tensor, x.location(), bytes_of(attributes));
}

Tensor transpose(const Arg& x, int first, int second) {
  const Tensor& tensor = tensor_of("transpose", x);
  ShapeAttributes attributes;
  int a = check_axis("transpose", first, tensor, x.location());
  int b = check_axis("transpose", second, tensor, x.location());
  for (int i = 0; i < tensor.rank(); ++i) attributes.shape.push_back(i == a ? b : i == b ? a : i);
  return invoke_view(permute_op, tensor, x.location(), bytes_of(attributes));
}

// expand: y repeats x;  dx = d, summed over the repetitions

constexpr OpInfo expand_op{
    .name = "expand",
    .forward =
        [](Call& call) {
          const Shape& shape = call.attributes<ShapeAttributes>().shape;
          const Body& x = call.input(0);
          Shape strides = shape;
          for (int i = 0; i < shape.rank(); ++i) {
            int own = i - (shape.rank() - x.rank);
            strides[i] = own < 0 || (x.dims[own] == 1 && shape[i] != 1) ? 0 : x.strides[own];
          }
          call.outputs[0] = view_of(*call.inputs[0], shape, strides, 0, call.where);
        },
    .gradient = [](Gradient& g) { g.accumulate(0, g.output()); },  // the backward pass sums broadcast axes
    .joining = runs_alone,
};

Tensor expand(const Arg& x, const Shape& shape) {
  const Tensor& tensor = tensor_of("expand", x);
  ShapeAttributes attributes{shape};
  int extra = shape.rank() - tensor.rank();
  bool fits = extra >= 0;
  std::int64_t count = 1;
  for (int i = 0; fits && i < shape.rank(); ++i) {
    std::int64_t own = i < extra ? 1 : tensor.body().dims[i - extra];
    if (shape[i] == -1 && i >= extra) attributes.shape[i] = own;
    fits = attributes.shape[i] >= 0 && (own == 1 || own == attributes.shape[i]) &&
           !__builtin_mul_overflow(count, attributes.shape[i], &count);
  }
  if (!fits)
    fail<ShapeError>("expand", x.location(), "{} cannot be repeated to the shape {}", describe(tensor),
                     to_string(shape));
  return invoke_view(expand_op, tensor, x.location(), bytes_of(attributes));
}

Tensor unsqueeze(const Arg& x, const Shape& axes) {
  const Tensor& tensor = tensor_of("unsqueeze", x);
  int rank = tensor.rank() + axes.rank();
  if (rank > max_rank)
    fail<ShapeError>("unsqueeze", x.location(),
                     "{} has {} axes already, and cannot get {} more: 8 are the most there can be", describe(tensor),
                     tensor.rank(), axes.rank());
  unsigned added = 0;
  for (std::int64_t axis : axes) {
    if (axis < -rank || axis >= rank)
      fail<ShapeError>("unsqueeze", x.location(), "an axis cannot be put in at {} of {}", axis, describe(tensor));
    unsigned bit = 1u << (axis < 0 ? axis + rank : axis);
    if (added & bit)
      fail<ShapeError>("unsqueeze", x.location(), "axis {} is named twice in {}, for {}", axis, to_string(axes),
                       describe(tensor));
    added |= bit;
  }
  Shape shape;
  const std::int64_t* size = tensor.body().dims;
  for (int i = 0; i < rank; ++i) shape.push_back(added >> i & 1 ? 1 : *size++);
  return reshape(x, shape);
}

namespace {

Tensor without_axes(const Arg& x, unsigned dropped) {
  const Tensor& tensor = *x.tensor();
  Shape shape;
  for (int i = 0; i < tensor.rank(); ++i)
    if (!(dropped >> i & 1)) shape.push_back(tensor.body().dims[i]);
  return reshape(x, shape);
}

}  // namespace

Tensor squeeze(const Arg& x, const Shape& axes) {
  const Tensor& tensor = tensor_of("squeeze", x);
  unsigned dropped = check_axes("squeeze", axes, tensor, x.location());
  for (int i = 0; i < tensor.rank(); ++i)
    if ((dropped >> i & 1) && tensor.body().dims[i] != 1)
      fail<ShapeError>("squeeze", x.location(), "axis {} of {} has not size 1", i, describe(tensor));
  return without_axes(x, dropped);
}

Tensor squeeze(const Arg& x) {
  const Tensor& tensor = tensor_of("squeeze", x);
  unsigned dropped = 0;
  for (int i = 0; i < tensor.rank(); ++i)
    if (tensor.body().dims[i] == 1) dropped |= 1u << i;
  return without_axes(x, dropped);
}

OpList detail::shape_ops() {
  static constexpr const OpInfo* ops[] = {&copy_op, &reshape_op, &permute_op, &expand_op};
  return ops;
}

}  // namespace reel
