#include <reel/ops/index.h>

#include <reel/ops/shape.h>

#include "../../core/op_error.h"
#include "index_checks.h"

// Ops that replace whole slices of an axis, which are scattered with an index that repeats along the other axes.

namespace reel {

using namespace detail;

namespace {

// A vector of indices along an axis of a shape.
Tensor repeated_along(const Tensor& index, int axis, const Shape& shape) {
  Shape beside;
  for (int i = 0; i < shape.rank(); ++i) beside.push_back(i == axis ? index.numel() : 1);
  return expand(reshape(index, beside), shape);
}

// The checked axis.
int check_slices(const char* name, const Tensor& x, int axis, const Tensor& index, Location where) {
  axis = check_axis(name, axis, x, where);
  check_index_dtype(name, index, where);
  check_index_vector(name, index, where);
  check_same_device(name, x, index, where);
  check_index_range(name, x, index, axis, where);
  return axis;
}

}  // namespace

Tensor index_copy(const Arg& x, int axis, const Arg& index, const Arg& source) {
  const char* name = "index_copy";
  const Tensor &to = tensor_of(name, x), &at = tensor_of(name, index), &from = tensor_of(name, source);
  Location where = x.location();
  OpScope caller(where, name);
  axis = check_slices(name, to, axis, at, where);
  Shape shape = to.shape();
  shape[axis] = at.numel();
  if (from.shape() != shape)
    fail<ShapeError>(name, where, "the source {} does not have the shape {} that x {} and the index {} ask for",
                     to_string(from.shape()), to_string(shape), describe(to), to_string(at.shape()));
  if (from.dtype() != to.dtype())
    fail<DTypeError>(name, where, "the source {} does not have x's dtype {}", describe(from), name_of(to.dtype()));
  check_same_device(name, to, from, where);
  return scatter(to, axis, repeated_along(at, axis, shape), from);
}

Tensor index_fill(const Arg& x, int axis, const Arg& index, const Arg& value) {
  const char* name = "index_fill";
  const Tensor &to = tensor_of(name, x), &at = tensor_of(name, index);
  Location where = x.location();
  OpScope caller(where, name);
  axis = check_slices(name, to, axis, at, where);
  Tensor number = value_for(name, to, value, where);
  if (number.rank() != 0) fail<ShapeError>(name, where, "the value {} is not a single number", describe(number));
  Shape shape = to.shape();
  shape[axis] = at.numel();
  return scatter(to, axis, repeated_along(at, axis, shape), expand(number, shape));
}

}  // namespace reel
