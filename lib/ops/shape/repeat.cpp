#include <reel/ops/shape.h>

#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>

#include "../../core/context.h"
#include "../../core/memory_error.h"
#include "../../core/op_error.h"
#include "../../core/storage.h"
#include "../if_needed.h"

namespace reel {

using namespace detail;

namespace {

// The product of the sizes [begin, end).
std::int64_t product(const Shape& shape, int begin, int end) {
  std::int64_t count = 1;
  for (int i = begin; i < end; ++i) count *= shape[i];
  return count;
}

// The shape with one size multiplied. Throws: ShapeError if it overflows.
Shape multiplied(const char* op, const Tensor& x, int axis, std::int64_t factor, Location where) {
  Shape shape = x.shape();
  std::int64_t count;
  if (__builtin_mul_overflow(shape[axis], factor, &shape[axis]) || __builtin_mul_overflow(x.numel(), factor, &count))
    fail<ShapeError>(op, where, "{} cannot be repeated {} times along axis {}: there is no such memory", describe(x),
                     factor, axis);
  return shape;
}

// Repeats each section of `size` elements `count` times: x is viewed as (sections, 1, size), expanded and copied.
Tensor stretched(const Tensor& x, std::int64_t size, std::int64_t count, const Shape& result, Location where) {
  std::int64_t sections = size == 0 ? 0 : x.numel() / size;
  Tensor seen = reshape(Arg(x, where), {sections, 1, size});
  return reshape(Arg(copy(Arg(expand(Arg(seen, where), {sections, count, size}), where)), where), result);
}

}  // namespace

// tile: axis by axis from the last, repeats all that is within the axis;
// dx = the sum over the repetitions

Tensor tile(const Arg& x, const Shape& repetitions) {
  const Tensor& tensor = tensor_of("tile", x);
  Location where = x.location();
  for (std::int64_t count : repetitions)
    if (count < 0)
      fail<ShapeError>("tile", where, "the repetitions {} of {} may not be negative", to_string(repetitions),
                       describe(tensor));
  Tensor tiled = tensor;
  if (int missing = repetitions.rank() - tensor.rank(); missing > 0) {
    Shape longer;
    for (int i = 0; i < missing; ++i) longer.push_back(1);
    for (std::int64_t size : tensor.shape()) longer.push_back(size);
    tiled = reshape(x, longer);
  }
  bool copied = false;
  for (int i = 1; i <= repetitions.rank(); ++i) {
    if (repetitions[-i] == 1) continue;
    int axis = tiled.rank() - i;
    Shape shape = multiplied("tile", tiled, axis, repetitions[-i], where);
    tiled = stretched(tiled, product(tiled.shape(), axis, tiled.rank()), repetitions[-i], shape, where);
    copied = true;
  }
  return copied ? tiled : copy(Arg(tiled, where));
}

// repeat: repeats single elements along an axis;  dx = the sum over the repetitions

Tensor repeat(const Arg& x, std::int64_t count, int axis) {
  const Tensor& tensor = tensor_of("repeat", x);
  axis = check_axis("repeat", axis, tensor, x.location());
  if (count < 0)
    fail<ShapeError>("repeat", x.location(), "the elements of {} cannot be repeated {} times", describe(tensor), count);
  Shape shape = multiplied("repeat", tensor, axis, count, x.location());
  return stretched(tensor, product(tensor.shape(), axis + 1, tensor.rank()), count, shape, x.location());
}

// repeat with counts: a gather of the elements along the axis

Tensor repeat(const Arg& x, const std::vector<std::int64_t>& counts, int axis) {
  const Tensor& tensor = tensor_of("repeat", x);
  Location where = x.location();
  OpScope caller(where, "repeat");
  axis = check_axis("repeat", axis, tensor, where);
  if (counts.size() != static_cast<std::size_t>(tensor.body().dims[axis]))
    fail<ShapeError>("repeat", where, "there are {} counts for axis {} of {}", counts.size(), axis, describe(tensor));
  std::int64_t total = 0;
  for (std::int64_t count : counts)
    if (count < 0 || __builtin_add_overflow(total, count, &total))
      fail<ShapeError>("repeat", where, "the count {} along axis {} of {} is negative, or too large", count, axis,
                       describe(tensor));
  Shape shape = tensor.shape(), along;
  shape[axis] = total;
  Tensor places = allocate(context(), {Shape{total}, DType::i64, cpu}, "repeat", where);
  {
    auto place = places.write<std::int64_t>();
    std::int64_t* next = place.data();
    for (std::size_t i = 0; i < counts.size(); ++i) next = std::fill_n(next, counts[i], static_cast<std::int64_t>(i));
  }
  for (int i = 0; i < tensor.rank(); ++i) along.push_back(i == axis ? total : 1);
  return gather(x, axis, expand(reshape(to_if_needed(places, tensor.device()), along), shape));
}

// roll: moves the end of an axis to its start

Tensor roll(const Arg& x, const Shape& shifts, const Shape& axes) {
  const Tensor& tensor = tensor_of("roll", x);
  Location where = x.location();
  if (shifts.rank() != axes.rank())
    fail<ShapeError>("roll", where, "there are {} shifts {} for {} axes {}", shifts.rank(), to_string(shifts),
                     axes.rank(), to_string(axes));
  for (std::int64_t axis : axes) check_axis("roll", axis, tensor, where);
  Tensor rolled = tensor;
  for (int i = 0; i < axes.rank(); ++i) {
    int axis = check_axis("roll", axes[i], tensor, where);
    std::int64_t size = tensor.body().dims[axis];
    std::int64_t shift = size == 0 ? 0 : shifts[i] % size;
    if (shift < 0) shift += size;
    if (shift == 0) continue;
    Arg before(rolled, where);
    rolled = concat({slice(before, axis, size - shift), slice(before, axis, 0, size - shift)}, axis, where);
  }
  return rolled.is(tensor) ? copy(x) : rolled;
}

std::vector<Tensor> meshgrid(std::span<const Tensor> tensors, MeshgridOptions options, Location where) {
  return with_memory_error("meshgrid", where, [&]() -> std::vector<Tensor> {
    const char* name = "meshgrid";
    OpScope caller(where, name);
    int count = static_cast<int>(tensors.size());
    if (tensors.empty() || tensors.size() > static_cast<std::size_t>(max_rank))
      fail<ShapeError>(name, where, "takes one to {} tensors, not {}", max_rank, tensors.size());
    // The axis of each tensor.
    auto axis_of = [&](int k) { return options.indexing == GridIndexing::xy && count > 1 && k < 2 ? 1 - k : k; };
    Shape shape;
    for (int k = 0; k < count; ++k) shape.push_back(1);
    for (int k = 0; k < count; ++k) {
      const Tensor& tensor = tensor_of(name, Arg(tensors[static_cast<std::size_t>(k)], where));
      if (tensor.rank() > 1) fail<ShapeError>(name, where, "tensor {} is not a vector: {}", k, describe(tensor));
      if (tensor.dtype() != tensors[0].dtype())
        fail<DTypeError>(name, where, "tensor {} is {}, not of the first one's dtype {}", k, describe(tensor),
                         name_of(tensors[0].dtype()));
      check_same_device(name, tensors[0], tensor, where);
      shape[axis_of(k)] = tensor.numel();
    }
    std::vector<Tensor> grid;
    for (int k = 0; k < count; ++k) {
      const Tensor& tensor = tensors[static_cast<std::size_t>(k)];
      Shape beside;
      for (int axis = 0; axis < count; ++axis) beside.push_back(axis == axis_of(k) ? tensor.numel() : 1);
      grid.push_back(expand(reshape(tensor, beside), shape));
    }
    return grid;
  });
}

}  // namespace reel
