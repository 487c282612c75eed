#include <reel/ops/pad.h>

#include <reel/ops/shape.h>

#include <algorithm>
#include <vector>

#include "../../core/convert.h"
#include "../../core/memory_error.h"
#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../index/places.h"
#include "../registry.h"
#include "attributes.h"

namespace reel {

using namespace detail;

namespace {

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
          g.accumulate(0, pad(g.output(), std::span<const PadWidth>(widths, static_cast<std::size_t>(whole.rank()))));
        },
    .internal = true,
};

// pad: y = x inside, a number outside;  dx = d inside

constexpr OpInfo pad_op{
    .name = "pad",
    .forward =
        [](Call& call) {
          const auto& pad = call.attributes<PadAttributes>();
          const KernelTable& table = kernels(call.output().device);
          const Body& x = call.input(0);
          // Fills the borders of each axis, within the inner part of the axes before.
          Tensor rest = call.outputs[0];
          for (int i = 0; i < x.rank; ++i) {
            std::int64_t begin = pad.before[i], end = begin + x.dims[i];
            for (const Tensor& border : {slice_view(rest, {i, 0, begin, 1}, call.where),
                                         slice_view(rest, {i, end, rest.body().dims[i] - end, 1}, call.where)})
              if (border.numel() != 0) table.fill(border.body(), pad.value, convert<std::int64_t>(double(pad.value)));
            rest = slice_view(rest, {i, begin, x.dims[i], 1}, call.where);
          }
          table.copy(rest.body(), x);
        },
    .gradient =
        [](Gradient& g) {
          CropAttributes attributes{g.attributes<PadAttributes>().before, g.input_shape(0)};
          g.accumulate(0, invoke_view(crop_op, g.output(), g.where(), bytes_of(attributes)));
        },
    .joining = [](const Call& call) -> Joining {
      const Body& x = call.input(0);
      if (x.rank > 0 && call.specs[0].dims[0] == x.dims[0]) return {.by = Joining::By::rows};
      if (x.rank == max_rank) return {};
      return {.by = Joining::By::stacked, .attributes = [](std::span<std::byte> attributes, std::int64_t) {
                auto& before = reinterpret_cast<PadAttributes*>(attributes.data())->before;
                Shape stacked{0};
                for (std::int64_t width : before) stacked.push_back(width);
                before = stacked;
              }};
    },
};

namespace {

// The padded size of an axis. Throws: ShapeError if it overflows.
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

// x with both ends of an axis extended by reflection, without repeating the elements at the ends.
Tensor reflected(const Tensor& x, int axis, PadWidth width, Location where) {
  Tensor padded = x;
  std::int64_t period = x.body().dims[axis] - 1;
  while (width.before > 0 || width.after > 0) {
    // Each round appends reversed copies, which are valid up to whole periods of the reflected axis.
    std::int64_t last = padded.body().dims[axis] - 1, reach = last / period * period;
    std::int64_t before = std::min(width.before, reach), after = std::min(width.after, reach);
    Arg from(padded, where);
    padded = concat({flip(Arg(slice(from, axis, 1, 1 + before), where), axis), padded,
                     flip(Arg(slice(from, axis, last - after, last), where), axis)},
                    axis, where);
    width = {width.before - before, width.after - after};
  }
  return padded;
}

// x with both ends of an axis extended by x itself.
Tensor repeated(const Arg& x, int axis, PadWidth width) {
  return with_memory_error("pad", x.location(), [&] {
    std::int64_t size = x.tensor()->body().dims[axis];
    std::vector<Tensor> parts;
    if (std::int64_t part = width.before % size) parts.push_back(slice(x, axis, size - part));
    std::int64_t whole = width.before / size + 1 + width.after / size;
    parts.insert(parts.end(), static_cast<std::size_t>(whole), *x.tensor());
    if (std::int64_t part = width.after % size) parts.push_back(slice(x, axis, 0, part));
    return concat(parts, axis, x.location());
  });
}

// One element of an axis, repeated `width` times.
Tensor edge(const Arg& x, int axis, std::int64_t index, std::int64_t width) {
  Shape shape = x.tensor()->shape();
  shape[axis] = width;
  return expand(Arg(slice(x, axis, index, index + 1), x.location()), shape);
}

// x with the elements at both ends of an axis repeated.
Tensor edged(const Arg& x, int axis, PadWidth width) {
  std::int64_t last = x.tensor()->body().dims[axis] - 1;
  return concat({edge(x, axis, 0, width.before), *x.tensor(), edge(x, axis, last, width.after)}, axis, x.location());
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
  // Fails before any work if memory is exhausted.
  allocate(context(), {shape, tensor.dtype(), tensor.device()}, "pad", where);
  Tensor padded = tensor;
  for (int i = 0; i < tensor.rank(); ++i) {
    std::int64_t size = tensor.body().dims[i];
    if (shape[i] == size) continue;
    // NumPy reflects a single element to itself.
    bool repeats = options.mode == PadMode::edge || size == 1;
    if (repeats)
      padded = edged(Arg(padded, where), i, width_of(i));
    else if (options.mode == PadMode::circular)
      padded = repeated(Arg(padded, where), i, width_of(i));
    else
      padded = reflected(padded, i, width_of(i), where);
  }
  return padded;
}

OpList detail::pad_ops() {
  static constexpr const OpInfo* ops[] = {&pad_op, &crop_op};
  return ops;
}

}  // namespace reel
