#include <reel/ops/shape.h>

#include <reel/ops/elementwise.h>

#include "../../core/memory_error.h"
#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../few.h"
#include "../joining.h"
#include "../registry.h"

namespace reel {

using namespace detail;

// concat: the inputs joined along an axis;  dx_i = the part of d for x_i

namespace {

// The tensors in their common dtype.
struct Joined {
  Few<const Tensor*> inputs;
  std::vector<Tensor> converted;  // tensors converted from another dtype
  DType dtype;

  // Throws: ShapeError for an empty list; Error for an undefined tensor or different devices.
  Joined(const char* op, std::span<const Tensor> tensors, Location where) : inputs(tensors.size()) {
    if (tensors.empty()) fail<ShapeError>(op, where, "there are no tensors to put together");
    dtype = tensor_of(op, Arg(tensors[0], where)).dtype();
    for (const Tensor& tensor : tensors) {
      dtype = promote(dtype, tensor_of(op, Arg(tensor, where)).dtype());
      check_same_device(op, tensors[0], tensor, where);
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) inputs[i] = in_dtype(tensors, i, where);
  }

  Tensor run(const OpInfo& op, const Shape& shape, int axis, Location where) {
    Tensor result;
    OutputSpec spec(shape, dtype, inputs[0]->device());
    AxisAttributes attributes{axis};
    Call call{op, inputs, bytes_of(attributes), {&spec, 1}, {&result, 1}, where};
    invoke(call);
    return result;
  }

 private:
  const Tensor* in_dtype(std::span<const Tensor> tensors, std::size_t i, Location where) {
    if (tensors[i].dtype() == dtype) return &tensors[i];
    converted.reserve(tensors.size());  // `inputs` points to its elements
    return &converted.emplace_back(to(Arg(tensors[i], where), dtype));
  }
};

std::string shapes_of(std::span<const Tensor> tensors) {
  std::string text;
  for (std::size_t i = 0; i < tensors.size() && i < 8; ++i) text += (i > 0 ? ", " : "") + to_string(tensors[i].shape());
  return tensors.size() > 8 ? text + ", …" : text;
}

void join(Call& call) {
  Few<const View*> parts(call.inputs.size());
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = &call.inputs[i]->body();
  kernels(call.output().device).concat(call.output(), parts, static_cast<int>(call.attributes<AxisAttributes>().axis));
}

}  // namespace

constexpr OpInfo concat_op{
    .name = "concat",
    .forward = join,
    .gradient =
        [](Gradient& g) {
          int axis = static_cast<int>(g.attributes<AxisAttributes>().axis);
          std::int64_t start = 0;
          for (std::size_t i = 0; i < g.input_count(); ++i) {
            std::int64_t size = g.input_shape(i)[axis];
            if (g.wants(i)) g.accumulate(i, slice(g.output(), axis, start, start + size));
            start += size;
          }
        },
    .keeps_input_shapes = true,
    .joining = by_other_axes,
};

Tensor concat(std::span<const Tensor> tensors, int axis, Location where) {
  return with_memory_error("concat", where, [&] {
    Joined joined("concat", tensors, where);
    axis = check_axis("concat", axis, tensors[0], where);
    Shape shape = tensors[0].shape();
    shape[axis] = 0;
    for (const Tensor& part : tensors) {
      Shape other = part.shape();
      std::int64_t size = other.rank() == shape.rank() ? other[axis] : 0;
      if (other.rank() == shape.rank()) other[axis] = shape[axis];
      if (!(other == shape))
        fail<ShapeError>("concat", where, "sizes differ off axis {}: {}", axis, shapes_of(tensors));
      if (__builtin_add_overflow(shape[axis], size, &shape[axis]))
        fail<ShapeError>("concat", where, "the sizes along axis {} are too large together: {}", axis,
                         shapes_of(tensors));
    }
    return joined.run(concat_op, shape, axis, where);
  });
}

// stack: y at index i of a new axis is x_i;  dx_i = d at i

constexpr OpInfo stack_op{
    .name = "stack",
    .forward = join,
    .gradient =
        [](Gradient& g) {
          int axis = static_cast<int>(g.attributes<AxisAttributes>().axis);
          for (std::size_t i = 0; i < g.input_count(); ++i)
            if (g.wants(i)) g.accumulate(i, select(g.output(), axis, static_cast<std::int64_t>(i)));
        },
    .joining = [](const Call& call) { return call.input(0).rank + 1 == max_rank ? Joining{} : by_other_axes(call); },
};

Tensor stack(std::span<const Tensor> tensors, int axis, Location where) {
  return with_memory_error("stack", where, [&] {
    Joined joined("stack", tensors, where);
    const Tensor& first = tensors[0];
    for (const Tensor& part : tensors)
      if (!(part.shape() == first.shape())) fail<ShapeError>("stack", where, "shapes differ: {}", shapes_of(tensors));
    int rank = first.rank();
    if (axis < -rank - 1 || axis > rank)
      fail<ShapeError>("stack", where, "a new axis cannot be put in at {} of {}", axis, describe(first));
    if (rank == max_rank)
      fail<ShapeError>("stack", where, "{} has 8 axes already, the most there can be", describe(first));
    if (axis < 0) axis += rank + 1;
    Shape shape;
    for (int i = 0; i <= rank; ++i)
      shape.push_back(i == axis ? static_cast<std::int64_t>(tensors.size()) : first.body().dims[i < axis ? i : i - 1]);
    return joined.run(stack_op, shape, axis, where);
  });
}

OpList detail::concat_ops() {
  static constexpr const OpInfo* ops[] = {&concat_op, &stack_op};
  return ops;
}

}  // namespace reel
