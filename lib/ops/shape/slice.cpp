#include <reel/ops/shape.h>

#include <algorithm>
#include <limits>

#include "../../core/memory_error.h"
#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../few.h"
#include "../index/places.h"
#include "../index/range.h"
#include "../joining.h"
#include "../registry.h"
#include "attributes.h"

namespace reel {

using namespace detail;

// slice: y_i = x_(start + i step) along an axis;  dx = d at those indices, else 0

Tensor detail::slice_view(const Tensor& x, const SliceAttributes& at, Location where) {
  Shape shape = x.shape(), strides = x.strides();
  int axis = static_cast<int>(at.axis);
  std::int64_t offset = at.count == 0 ? 0 : at.start * strides[axis];
  shape[axis] = at.count;
  strides[axis] *= at.step;
  return view_of(x, shape, strides, offset, where);
}

// z = zeros with d at the indices of a slice;  dd = e at that slice

struct UnsliceAttributes {
  SliceAttributes slice;
  Shape shape;
};

constexpr OpInfo unslice_op{
    .name = "slice_gradient",
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
          // A negative stop would count from the end.
          g.accumulate(0, slice(g.output(), static_cast<int>(at.axis), at.start,
                                stop < 0 ? std::numeric_limits<std::int64_t>::min() : stop, at.step));
        },
    .internal = true,
};

// sum += d at the indices of a slice

constexpr OpInfo accumulate_slice_op{
    .name = "accumulate_slice",
    .forward =
        [](Call& call) {
          Tensor part = slice_view(call.outputs[0], call.attributes<SliceAttributes>(), call.where);
          kernels(part.device()).binary[binary_place<formulas::Add>](part.body(), part.body(), call.input(1));
        },
    .internal = true,
};

constexpr OpInfo slice_op{
    .name = "slice",
    .forward =
        [](Call& call) {
          call.outputs[0] = slice_view(*call.inputs[0], call.attributes<SliceAttributes>(), call.where);
        },
    .gradient =
        [](Gradient& g) {
          if (!g.wants(0) || g.add_to_part(0, accumulate_slice_op)) return;
          UnsliceAttributes attributes{g.attributes<SliceAttributes>(), g.input_shape(0)};
          const Tensor& d = g.output();
          g.accumulate(
              0, invoke(unslice_op, {&d}, {attributes.shape, d.dtype(), d.device()}, g.where(), bytes_of(attributes)));
        },
    .joining = by_other_axes,
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

// split: adjacent slices along an axis;  dx = their gradients, concatenated

namespace {

// The attributes of split: the axis, then the size of each part.
std::span<const std::int64_t> split_numbers(std::span<const std::byte> attributes) {
  return {reinterpret_cast<const std::int64_t*>(attributes.data()), attributes.size() / sizeof(std::int64_t)};
}

}  // namespace

constexpr OpInfo split_op{
    .name = "split",
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
          g.accumulate(0, concat(parts, static_cast<int>(split_numbers(g.attribute_bytes())[0])));
        },
    .joining = by_other_axes,
};

namespace {

// Splits x into parts of the sizes numbers[1], … along axis numbers[0].
std::vector<Tensor> split_by(const Tensor& x, std::span<const std::int64_t> numbers, Location where) {
  std::vector<Tensor> parts(numbers.size() - 1);
  const Tensor* input = &x;
  Call call{split_op, {&input, 1}, std::as_bytes(numbers), {}, parts, where};
  if (!parts.empty()) invoke(call);
  return parts;
}

// Splits x into `count` parts, each but the last of length `size`.
std::vector<Tensor> split_evenly(const Tensor& x, std::int64_t count, std::int64_t size, int axis, Location where) {
  Few<std::int64_t> numbers(static_cast<std::size_t>(count) + 1);
  numbers[0] = axis;
  for (std::size_t i = 1; i < numbers.size(); ++i) numbers[i] = size;
  numbers[numbers.size() - 1] = x.body().dims[axis] - (count - 1) * size;
  return split_by(x, numbers, where);
}

}  // namespace

std::vector<Tensor> split(const Arg& x, const std::vector<std::int64_t>& sizes, int axis) {
  return with_memory_error("split", x.location(), [&] {
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
    Few<std::int64_t> numbers(sizes.size() + 1);
    numbers[0] = axis;
    std::copy(sizes.begin(), sizes.end(), numbers.begin() + 1);
    return split_by(tensor, numbers, where);
  });
}

std::vector<Tensor> split(const Arg& x, std::int64_t size, int axis) {
  return with_memory_error("split", x.location(), [&] {
    const Tensor& tensor = tensor_of("split", x);
    if (size <= 0)
      fail<ShapeError>("split", x.location(), "parts of size {} cannot be made of {}", size, describe(tensor));
    axis = check_axis("split", axis, tensor, x.location());
    std::int64_t whole = tensor.body().dims[axis];
    std::int64_t count = whole == 0 ? 1 : (whole - 1) / size + 1;  // an empty axis has one part
    return split_evenly(tensor, count, count == 1 ? whole : size, axis, x.location());
  });
}

std::vector<Tensor> chunk(const Arg& x, std::int64_t count, int axis) {
  return with_memory_error("chunk", x.location(), [&]() -> std::vector<Tensor> {
    const Tensor& tensor = tensor_of("chunk", x);
    if (count <= 0) fail<ShapeError>("chunk", x.location(), "{} parts cannot be made of {}", count, describe(tensor));
    axis = check_axis("chunk", axis, tensor, x.location());
    std::int64_t whole = tensor.body().dims[axis];
    if (whole == 0 && count > (1 << 20))
      fail<ShapeError>("chunk", x.location(), "{} empty parts of {} are more than anybody needs", count,
                       describe(tensor));
    if (whole == 0) return split_evenly(tensor, count, 0, axis, x.location());
    std::int64_t size = (whole - 1) / count + 1;
    return split_evenly(tensor, (whole - 1) / size + 1, size, axis, x.location());
  });
}

// flip: y_i = x_(n − 1 − i) along each axis of a set;  dx = d, flipped back

constexpr OpInfo flip_op{
    .name = "flip",
    .forward =
        [](Call& call) {
          std::uint64_t axes = call.attributes<FlipAttributes>().axes;
          const Tensor& x = *call.inputs[0];
          Shape strides = x.strides();
          std::int64_t offset = 0;
          for (int i = 0; i < strides.rank(); ++i) {
            if (!(axes >> i & 1)) continue;
            if (x.numel() != 0) offset += (x.body().dims[i] - 1) * strides[i];
            strides[i] = -strides[i];
          }
          call.outputs[0] = view_of(x, x.shape(), strides, offset, call.where);
        },
    .gradient = [](Gradient& g) { g.accumulate(0, invoke_view(*g.op(), g.output(), g.where(), g.attribute_bytes())); },
    .joining = [](const Call& call) -> Joining {
      int rank = call.input(0).rank;
      if (rank > 0 && (call.attributes<FlipAttributes>().axes & 1) == 0) return {.by = Joining::By::rows};
      if (rank == max_rank) return {};
      return {.by = Joining::By::stacked, .attributes = [](std::span<std::byte> attributes, std::int64_t) {
                reinterpret_cast<FlipAttributes*>(attributes.data())->axes <<= 1;
              }};
    },
};

Tensor flip(const Arg& x, const Shape& axes) {
  const Tensor& tensor = tensor_of("flip", x);
  FlipAttributes attributes{check_axes("flip", axes, tensor, x.location())};
  return invoke_view(flip_op, tensor, x.location(), bytes_of(attributes));
}

Tensor flip(const Arg& x) {
  const Tensor& tensor = tensor_of("flip", x);
  FlipAttributes attributes{(1u << tensor.rank()) - 1};
  return invoke_view(flip_op, tensor, x.location(), bytes_of(attributes));
}

OpList detail::slice_ops() {
  static constexpr const OpInfo* ops[] = {&slice_op, &split_op, &flip_op, &unslice_op, &accumulate_slice_op};
  return ops;
}

}  // namespace reel
