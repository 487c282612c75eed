#include <reel/ops/shape.h>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/reduce.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "../core/invoke.h"
#include "../core/kernel_table.h"
#include "../core/op_error.h"
#include "../tape/gradient.h"
#include "range.h"
#include "registry.h"

namespace reel {

using namespace detail;

namespace {

struct ShapeAttributes {
  Shape shape;
};

// The strides that show the elements of x under another shape; false if no strides do.
bool reshaped_strides(const Body& x, const Shape& shape, Shape& strides) {
  strides = contiguous_strides(shape);
  if (x.contiguous || x.numel == 0) return true;
  // Axes that step evenly through memory form runs; each new axis must lie within one.
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
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = [](Call& call) { kernels(call.output().device).copy(call.output(), call.input(0)); },
    .gradient = [](Gradient& g) { g.give(0, g.output()); },
};

Tensor copy(const Arg& x) {
  const Tensor& tensor = tensor_of("copy", x);
  return invoke(copy_op, {&tensor}, {tensor.body(), tensor.dtype()}, x.location());
}

Tensor contiguous(const Arg& x) {
  const Tensor& tensor = tensor_of("contiguous", x);
  return tensor.is_contiguous() ? tensor : copy(x);
}

// reshape: the same elements;  dx = d in x's shape

constexpr OpInfo reshape_op{
    .name = "reshape",
    .arity = 1,
    .batching = Batching::stack,
    .forward =
        [](Call& call) {
          const Shape& shape = call.attributes<ShapeAttributes>().shape;
          Shape strides;
          reshaped_strides(call.input(0), shape, strides);
          call.outputs[0] = view_of(*call.inputs[0], shape, strides, 0, call.where);
        },
    .gradient = [](Gradient& g) { g.give(0, reshape(g.output(), g.input_shape(0))); },
};

Tensor reshape(const Arg& x, const Shape& shape) {
  const char* name = reshape_op.name;
  const Tensor& tensor = tensor_of(name, x);
  Location where = x.location();
  ShapeAttributes attributes{shape};
  std::int64_t known = 1;
  bool overflow = false;
  int open = -1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1 && open < 0) {
      open = i;
    } else if (shape[i] < 0) {
      fail<ShapeError>(name, where, "the shape {} may have one size of -1, and no other negative one",
                       to_string(shape));
    } else {
      overflow |= __builtin_mul_overflow(known, shape[i], &known);
    }
  }
  if (open >= 0 && known != 0 && tensor.numel() % known == 0) attributes.shape[open] = tensor.numel() / known;
  if (overflow || (open >= 0 ? attributes.shape[open] < 0 : known != tensor.numel()))
    fail<ShapeError>(name, where, "the {} elements of {} do not fill the shape {}", tensor.numel(), describe(tensor),
                     to_string(shape));
  Shape strides;
  if (reshaped_strides(tensor.body(), attributes.shape, strides))
    return invoke_view(reshape_op, tensor, where, bytes_of(attributes));
  return invoke_view(reshape_op, copy(x), where, bytes_of(attributes));
}

// permute: y's axis i is x's axis axes[i];  dx = d, permuted back

constexpr OpInfo permute_op{
    .name = "permute",
    .arity = 1,
    .batching = Batching::stack,
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
          g.give(0, permute(g.output(), back));
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
    .arity = 1,
    .batching = Batching::stack,
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
    .gradient = [](Gradient& g) { g.give(0, g.output()); },  // the walk sums broadcast axes
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
  if (attributes.shape == tensor.shape()) return tensor;
  return invoke_view(expand_op, tensor, x.location(), bytes_of(attributes));
}

// slice: y_i = x_(start + i step) along an axis;  dx = d in those places, else 0

namespace {

struct SliceAttributes {
  std::int64_t axis, start, count, step;
};

Tensor slice_view(const Tensor& x, const SliceAttributes& at, Location where) {
  Shape shape = x.shape(), strides = x.strides();
  int axis = static_cast<int>(at.axis);
  std::int64_t offset = at.count == 0 ? 0 : at.start * strides[axis];
  shape[axis] = at.count;
  strides[axis] *= at.step;
  return view_of(x, shape, strides, offset, where);
}

}  // namespace

// z = zeros with d in the places of a slice;  dd = e at that slice

struct UnsliceAttributes {
  SliceAttributes slice;
  Shape shape;
};

constexpr OpInfo unslice_op{
    .name = "slice_gradient",
    .arity = 1,
    .batching = Batching::loop,
    .forward =
        [](Call& call) {
          const KernelTable& table = kernels(call.output().device);
          table.fill(call.output(), 0, 0);
          Tensor part = slice_view(call.outputs[0], call.attributes<UnsliceAttributes>().slice, call.where);
          table.copy(part.body(), call.input(0));
        },
    .gradient =
        [](Gradient& g) {
          const SliceAttributes& at = g.attributes<UnsliceAttributes>().slice;
          std::int64_t stop = at.start + at.count * at.step;
          // Below 0 a stop would count from the end.
          g.give(0, slice(g.output(), static_cast<int>(at.axis), at.start,
                          stop < 0 ? std::numeric_limits<std::int64_t>::min() : stop, at.step));
        },
};

constexpr OpInfo slice_op{
    .name = "slice",
    .arity = 1,
    .batching = Batching::stack,
    .forward =
        [](Call& call) {
          call.outputs[0] = slice_view(*call.inputs[0], call.attributes<SliceAttributes>(), call.where);
        },
    .gradient =
        [](Gradient& g) {
          UnsliceAttributes attributes{g.attributes<SliceAttributes>(), g.input_shape(0)};
          const Tensor& d = g.output();
          g.give(0,
                 invoke(unslice_op, {&d}, {attributes.shape, d.dtype(), d.device()}, g.where(), bytes_of(attributes)));
        },
};

Tensor slice(const Arg& x, int axis, std::int64_t start, std::int64_t stop, std::int64_t step) {
  const Tensor& tensor = tensor_of("slice", x);
  axis = check_axis("slice", axis, tensor, x.location());
  if (step == 0) fail<ShapeError>("slice", x.location(), "a step of 0 goes nowhere, for {}", describe(tensor));
  Range range = range_of(start, stop, step, tensor.body().dims[axis]);
  return invoke_view(slice_op, tensor, x.location(),
                     bytes_of(SliceAttributes{axis, range.start, range.count, range.step}));
}

Tensor select(const Arg& x, int axis, std::int64_t index) {
  const Tensor& tensor = tensor_of("select", x);
  Location where = x.location();
  axis = check_axis("select", axis, tensor, where);
  std::int64_t size = tensor.body().dims[axis];
  if (index < -size || index >= size)
    fail<IndexError>("select", where, "index {} is out of range for axis {} of {}", index, axis, describe(tensor));
  if (index < 0) index += size;
  return squeeze(Arg(slice(x, axis, index, index + 1), where), axis);
}

// split: neighbouring slices along an axis;  dx = their gradients, one behind the other

namespace {

// The axis, then the size of each part.
std::span<const std::int64_t> split_numbers(std::span<const std::byte> attributes) {
  return {reinterpret_cast<const std::int64_t*>(attributes.data()), attributes.size() / sizeof(std::int64_t)};
}

}  // namespace

constexpr OpInfo split_op{
    .name = "split",
    .arity = 1,
    .batching = Batching::stack,
    .forward =
        [](Call& call) {
          std::span<const std::int64_t> numbers = split_numbers(call.attribute_bytes);
          std::int64_t start = 0;
          for (std::size_t i = 0; i < call.outputs.size(); ++i) {
            std::int64_t size = numbers[i + 1];
            call.outputs[i] = slice_view(*call.inputs[0], {numbers[0], start, size, 1}, call.where);
            start += size;
          }
        },
    .gradient =
        [](Gradient& g) {
          std::vector<Tensor> parts;
          for (std::size_t i = 0; i < g.output_count(); ++i) parts.push_back(g.output(i));
          g.give(0, concat(parts, static_cast<int>(split_numbers(g.attribute_bytes())[0])));
        },
};

std::vector<Tensor> split(const Arg& x, const std::vector<std::int64_t>& sizes, int axis) {
  const Tensor& tensor = tensor_of("split", x);
  Location where = x.location();
  axis = check_axis("split", axis, tensor, where);
  std::int64_t left = tensor.body().dims[axis];
  bool fits = true;
  for (std::int64_t size : sizes) {
    fits = fits && size >= 0 && size <= left;
    left -= fits ? size : 0;
  }
  if (!fits || left != 0)
    fail<ShapeError>("split", where, "the sizes {} do not add up to axis {} of {}",
                     fmt::format("{}", fmt::join(sizes, " + ")), axis, describe(tensor));
  std::vector<std::int64_t> numbers{axis};
  numbers.insert(numbers.end(), sizes.begin(), sizes.end());
  std::vector<Tensor> parts(sizes.size());
  if (parts.empty()) return parts;
  const Tensor* input = &tensor;
  Call call{split_op, {&input, 1}, std::as_bytes(std::span(numbers)), {}, parts, where};
  invoke(call);
  return parts;
}

std::vector<Tensor> split(const Arg& x, std::int64_t size, int axis) {
  const Tensor& tensor = tensor_of("split", x);
  if (size <= 0)
    fail<ShapeError>("split", x.location(), "parts of size {} cannot be made of {}", size, describe(tensor));
  std::int64_t left = tensor.body().dims[check_axis("split", axis, tensor, x.location())];
  std::vector<std::int64_t> sizes;
  do {  // of nothing there is one part
    sizes.push_back(std::min(size, left));
    left -= size;
  } while (left > 0);
  return split(x, sizes, axis);
}

Tensor unsqueeze(const Arg& x, int axis) {
  const Tensor& tensor = tensor_of("unsqueeze", x);
  int rank = tensor.rank();
  if (axis < -rank - 1 || axis > rank)
    fail<ShapeError>("unsqueeze", x.location(), "an axis cannot be put in at {} of {}", axis, describe(tensor));
  if (rank == max_rank)
    fail<ShapeError>("unsqueeze", x.location(), "{} has 8 axes already, the most there can be", describe(tensor));
  if (axis < 0) axis += rank + 1;
  Shape shape;
  for (int i = 0; i <= rank; ++i)
    shape.push_back(i < axis ? tensor.body().dims[i] : i == axis ? 1 : tensor.body().dims[i - 1]);
  return reshape(x, shape);
}

Tensor squeeze(const Arg& x, int axis) {
  const Tensor& tensor = tensor_of("squeeze", x);
  axis = check_axis("squeeze", axis, tensor, x.location());
  if (tensor.body().dims[axis] != 1)
    fail<ShapeError>("squeeze", x.location(), "axis {} of {} has not size 1", axis, describe(tensor));
  Shape shape;
  for (int i = 0; i < tensor.rank(); ++i)
    if (i != axis) shape.push_back(tensor.body().dims[i]);
  return reshape(x, shape);
}

// concat: the inputs one behind the other;  dx_i = d at the place of x_i

namespace {

std::vector<const Tensor*> pointers(std::span<const Tensor> tensors) {
  std::vector<const Tensor*> found;
  for (const Tensor& tensor : tensors) found.push_back(&tensor);
  return found;
}

// Every tensor in the dtype where all meet. Throws: Error for no tensors, an undefined one, or different devices.
std::vector<Tensor> in_common_dtype(const char* op, std::span<const Tensor> tensors, Location where) {
  if (tensors.empty()) fail<ShapeError>(op, where, "there are no tensors to put together");
  DType dtype = tensor_of(op, Arg(tensors[0], where)).dtype();
  for (const Tensor& tensor : tensors) {
    dtype = promote(dtype, tensor_of(op, Arg(tensor, where)).dtype());
    check_same_device(op, tensors[0], tensor, where);
  }
  std::vector<Tensor> same;
  for (const Tensor& tensor : tensors) same.push_back(to(Arg(tensor, where), dtype));
  return same;
}

std::string shapes_of(std::span<const Tensor> tensors) {
  std::string text;
  for (std::size_t i = 0; i < tensors.size() && i < 8; ++i) text += (i > 0 ? ", " : "") + to_string(tensors[i].shape());
  return tensors.size() > 8 ? text + ", …" : text;
}

}  // namespace

constexpr OpInfo concat_op{
    .name = "concat",
    .arity = -1,
    .batching = Batching::stack,
    .forward =
        [](Call& call) {
          std::int64_t axis = call.attributes<AxisAttributes>().axis, start = 0;
          for (const Tensor* input : call.inputs) {
            std::int64_t size = input->body().dims[axis];
            Tensor place = slice_view(call.outputs[0], {axis, start, size, 1}, call.where);
            kernels(place.device()).copy(place.body(), input->body());
            start += size;
          }
        },
    .gradient =
        [](Gradient& g) {
          int axis = static_cast<int>(g.attributes<AxisAttributes>().axis);
          std::int64_t start = 0;
          for (std::size_t i = 0; i < g.input_count(); ++i) {
            std::int64_t size = g.input_shape(i)[axis];
            if (g.wants(i)) g.give(i, slice(g.output(), axis, start, start + size));
            start += size;
          }
        },
    .keeps_input_shapes = true,
};

Tensor concat(std::span<const Tensor> tensors, int axis, Location where) {
  std::vector<Tensor> parts = in_common_dtype("concat", tensors, where);
  axis = check_axis("concat", axis, parts[0], where);
  Shape shape = parts[0].shape();
  shape[axis] = 0;
  for (const Tensor& part : parts) {
    Shape other = part.shape();
    std::int64_t size = other.rank() == shape.rank() ? other[axis] : 0;
    if (other.rank() == shape.rank()) other[axis] = shape[axis];
    if (!(other == shape)) fail<ShapeError>("concat", where, "sizes differ off axis {}: {}", axis, shapes_of(tensors));
    if (__builtin_add_overflow(shape[axis], size, &shape[axis]))
      fail<ShapeError>("concat", where, "the sizes along axis {} are too large together: {}", axis, shapes_of(tensors));
  }
  Tensor joined;
  OutputSpec spec(shape, parts[0].dtype(), parts[0].device());
  AxisAttributes attributes{axis};
  std::vector<const Tensor*> inputs = pointers(parts);
  Call call{concat_op, inputs, bytes_of(attributes), {&spec, 1}, {&joined, 1}, where};
  invoke(call);
  return joined;
}

// stack: y at i along a new axis is x_i;  dx_i = d at i

constexpr OpInfo stack_op{
    .name = "stack",
    .arity = -1,
    .batching = Batching::stack,
    .forward =
        [](Call& call) {
          int axis = static_cast<int>(call.attributes<AxisAttributes>().axis);
          for (std::size_t i = 0; i < call.inputs.size(); ++i) {
            // The place of one input: the output without the new axis.
            const Body& out = call.output();
            Shape shape, strides;
            for (int k = 0; k < out.rank; ++k) {
              if (k == axis) continue;
              shape.push_back(out.dims[k]);
              strides.push_back(out.strides[k]);
            }
            Tensor place =
                view_of(call.outputs[0], shape, strides, static_cast<std::int64_t>(i) * out.strides[axis], call.where);
            kernels(place.device()).copy(place.body(), call.input(static_cast<int>(i)));
          }
        },
    .gradient =
        [](Gradient& g) {
          int axis = static_cast<int>(g.attributes<AxisAttributes>().axis);
          for (std::size_t i = 0; i < g.input_count(); ++i)
            if (g.wants(i)) g.give(i, select(g.output(), axis, static_cast<std::int64_t>(i)));
        },
};

Tensor stack(std::span<const Tensor> tensors, int axis, Location where) {
  std::vector<Tensor> parts = in_common_dtype("stack", tensors, where);
  for (const Tensor& part : parts)
    if (!(part.shape() == parts[0].shape())) fail<ShapeError>("stack", where, "shapes differ: {}", shapes_of(tensors));
  int rank = parts[0].rank();
  if (axis < -rank - 1 || axis > rank)
    fail<ShapeError>("stack", where, "a new axis cannot be put in at {} of {}", axis, describe(parts[0]));
  if (rank == max_rank)
    fail<ShapeError>("stack", where, "{} has 8 axes already, the most there can be", describe(parts[0]));
  if (axis < 0) axis += rank + 1;
  Shape shape;
  for (int i = 0; i <= rank; ++i)
    shape.push_back(i == axis ? static_cast<std::int64_t>(parts.size()) : parts[0].body().dims[i < axis ? i : i - 1]);
  Tensor stacked;
  OutputSpec spec(shape, parts[0].dtype(), parts[0].device());
  AxisAttributes attributes{axis};
  std::vector<const Tensor*> inputs = pointers(parts);
  Call call{stack_op, inputs, bytes_of(attributes), {&spec, 1}, {&stacked, 1}, where};
  invoke(call);
  return stacked;
}

std::span<const RegisteredOp> detail::shape_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "copy", .info = &copy_op},
      {.name = "reshape", .info = &reshape_op},
      {.name = "permute", .info = &permute_op},
      {.name = "expand", .info = &expand_op},
      {.name = "slice", .info = &slice_op},
      {.name = "split", .info = &split_op},
      {.name = "concat", .info = &concat_op},
      {.name = "stack", .info = &stack_op},
      {.name = "slice_gradient", .info = &unslice_op, .internal = true},
      {.name = "transpose", .info = &permute_op},
      {.name = "select"},
      {.name = "unsqueeze", .info = &reshape_op},
      {.name = "squeeze", .info = &reshape_op},
      {.name = "contiguous"},
  };
  return ops;
}

}  // namespace reel
