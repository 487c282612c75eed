#include <reel/ops/pad.h>

#include <reel/ops/shape.h>

#include <algorithm>
#include <vector>

#include "../core/convert.h"
#include "../core/invoke.h"
#include "../core/kernel_table.h"
#include "../core/op_error.h"
#include "../tape/gradient.h"
#include "places.h"
#include "registry.h"

namespace reel {

using namespace detail;

namespace {

struct PadAttributes {
  Shape before;
  FloatBits value;
};

struct CropAttributes {
  Shape before, shape;
};

Tensor inside_view(const Tensor& y, const Shape& before, const Shape& shape, Location where) {
  const Body& body = y.body();
  std::int64_t offset = 0;
  for (int i = 0; i < body.rank; ++i) offset += before[i] * body.strides[i];
  return view_of(y, shape, y.strides(), shape.numel() == 0 ? 0 : offset, where);
}

}  // namespace

// crop: y = x inside;  dx = d inside, 0 outside

constexpr OpInfo crop_op{
    .name = "pad_gradient",
    .arity = 1,
    .batching = Batching::stack,
    .forward =
        [](Call& call) {
          const auto& at = call.attributes<CropAttributes>();
          call.outputs[0] = inside_view(*call.inputs[0], at.before, at.shape, call.where);
        },
    .gradient =
        [](Gradient& g) {
          const auto& at = g.attributes<CropAttributes>();
          Shape whole = g.input_shape(0);
          PadWidth widths[max_rank];
          for (int i = 0; i < whole.rank(); ++i) widths[i] = {at.before[i], whole[i] - at.before[i] - at.shape[i]};
          g.give(0, pad(g.output(), std::span<const PadWidth>(widths, static_cast<std::size_t>(whole.rank()))));
        },
};

// pad: y = x inside, a number outside;  dx = d inside

constexpr OpInfo pad_op{
    .name = "pad",
    .arity = 1,
    .batching = Batching::stack,
    .forward =
        [](Call& call) {
          const auto& pad = call.attributes<PadAttributes>();
          const KernelTable& table = kernels(call.output().device);
          const Body& x = call.input(0);
          // The borders of each axis, within what lies inside of the axes before.
          Tensor rest = call.outputs[0];
          for (int i = 0; i < x.rank; ++i) {
            std::int64_t begin = pad.before[i], end = begin + x.dims[i];
            for (Tensor border : {slice_view(rest, {i, 0, begin, 1}, call.where),
                                  slice_view(rest, {i, end, rest.body().dims[i] - end, 1}, call.where)})
              if (border.numel() != 0) table.fill(border.body(), pad.value, convert<std::int64_t>(double(pad.value)));
            rest = slice_view(rest, {i, begin, x.dims[i], 1}, call.where);
          }
          table.copy(rest.body(), x);
        },
    .gradient =
        [](Gradient& g) {
          CropAttributes attributes{g.attributes<PadAttributes>().before, g.input_shape(0)};
          g.give(0, invoke_view(crop_op, g.output(), g.where(), bytes_of(attributes)));
        },
};

namespace {

// Throws: ShapeError where the padded size overflows.
std::int64_t padded_size(const Tensor& x, int axis, PadWidth width, Location where) {
  std::int64_t size = x.body().dims[axis];
  if (width.before < 0 || width.after < 0)
    fail<ShapeError>("pad", where, "the widths {} and {} of axis {} of {} may not be negative; slice cuts off",
                     width.before, width.after, axis, describe(x));
  if (__builtin_add_overflow(size, width.before, &size) || __builtin_add_overflow(size, width.after, &size))
    fail<ShapeError>("pad", where, "the widths {} and {} of axis {} of {} are larger than any memory", width.before,
                     width.after, axis, describe(x));
  return size;
}

// What lies before x along an axis, in parts: x backwards and forwards in turn, without the element where they meet.
std::vector<Tensor> reflections_before(const Arg& x, int axis, std::int64_t width) {
  std::vector<Tensor> parts;
  std::int64_t period = x.tensor()->body().dims[axis] - 1;
  for (bool backwards = true; width > 0; backwards = !backwards) {
    std::int64_t part = std::min(width, period);
    if (backwards)
      parts.push_back(flip(Arg(slice(x, axis, 1, 1 + part), x.location()), axis));
    else
      parts.push_back(slice(x, axis, period - part, period));
    width -= part;
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Tensor> reflections_after(const Arg& x, int axis, std::int64_t width) {
  std::vector<Tensor> parts = reflections_before(Arg(flip(x, axis), x.location()), axis, width);
  for (Tensor& part : parts) part = flip(Arg(part, x.location()), axis);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

// One element of an axis, several times.
Tensor edge(const Arg& x, int axis, std::int64_t index, std::int64_t width) {
  Shape shape = x.tensor()->shape();
  shape[axis] = width;
  return expand(Arg(slice(x, axis, index, index + 1), x.location()), shape);
}

// x with more of itself on both sides of an axis.
Tensor extended(const Arg& x, int axis, PadWidth width, PadMode mode) {
  std::int64_t size = x.tensor()->body().dims[axis];
  std::vector<Tensor> parts, after;
  // NumPy reflects a single element to itself.
  if (mode == PadMode::edge || size == 1) {
    if (width.before > 0) parts.push_back(edge(x, axis, 0, width.before));
    if (width.after > 0) after.push_back(edge(x, axis, size - 1, width.after));
  } else {
    parts = reflections_before(x, axis, width.before);
    after = reflections_after(x, axis, width.after);
  }
  parts.push_back(*x.tensor());
  parts.insert(parts.end(), after.begin(), after.end());
  return concat(parts, axis, x.location());
}

}  // namespace

Tensor pad(const Arg& x, std::span<const PadWidth> widths, PadOptions options) {
  const Tensor& tensor = tensor_of("pad", x);
  Location where = x.location();
  if (widths.size() != 1 && widths.size() != static_cast<std::size_t>(tensor.rank()))
    fail<ShapeError>("pad", where, "there are {} widths for the axes of {}", widths.size(), describe(tensor));
  auto width_of = [&](int axis) { return widths[widths.size() == 1 ? 0 : static_cast<std::size_t>(axis)]; };
  PadAttributes attributes{{}, options.value};
  Shape shape;
  bool wider = false;
  for (int i = 0; i < tensor.rank(); ++i) {
    shape.push_back(padded_size(tensor, i, width_of(i), where));
    attributes.before.push_back(width_of(i).before);
    wider |= shape[i] != tensor.body().dims[i];
    if (options.mode != PadMode::constant && tensor.body().dims[i] == 0 && shape[i] != 0)
      fail<ShapeError>("pad", where, "axis {} of {} has no elements to pad with", i, describe(tensor));
  }
  if (options.mode == PadMode::constant)
    return invoke(pad_op, {&tensor}, {shape, tensor.dtype(), tensor.device()}, where, bytes_of(attributes));
  if (!wider) return copy(x);
  Tensor padded = tensor;
  for (int i = 0; i < tensor.rank(); ++i)
    if (shape[i] != tensor.body().dims[i]) padded = extended(Arg(padded, where), i, width_of(i), options.mode);
  return padded;
}

std::span<const RegisteredOp> detail::pad_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "pad", .info = &pad_op},
      {.name = "pad_gradient", .info = &crop_op, .internal = true},
  };
  return ops;
}

}  // namespace reel
