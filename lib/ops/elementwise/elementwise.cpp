#include "elementwise.h"

#include <reel/ops/elementwise.h>

namespace reel::detail {

Tensor binary_general(const OpInfo& op, const Arg& a, const Arg& b, Types types) {
  Location where = a.location();
  DType dtype = common_dtype(op.name, a, b);
  if (types == Types::floating && !is_floating(dtype)) dtype = DType::f32;
  if (types == Types::no_bool && dtype == DType::boolean)
    fail<DTypeError>(op.name, where, "bools cannot be operands; convert one with to(x, i32), or compare them");
  Operand x(op.name, a, dtype, b), y(op.name, b, dtype, a);
  check_same_device(op.name, *x, *y, where);
  Shape shape;
  if (!broadcast(x->shape(), y->shape(), shape))
    fail<ShapeError>(op.name, where, "shapes do not broadcast: a {}, b {}", to_string(x->shape()),
                     to_string(y->shape()));
  return invoke(op, {&*x, &*y}, {shape, types == Types::comparison ? DType::boolean : dtype, x->device()}, where);
}

Tensor unary(const OpInfo& op, const Arg& x) {
  const Tensor& tensor = tensor_of(op.name, x);
  return invoke(op, {&tensor}, {tensor.body(), tensor.dtype()}, x.location());
}

Tensor floating_unary(const OpInfo& op, const Arg& x) {
  const Tensor& tensor = tensor_of(op.name, x);
  if (is_floating(tensor.dtype())) [[likely]]
    return unary(op, x);
  return unary(op, Arg(to(x, DType::f32), x.location()));
}

Tensor number_unary(const OpInfo& op, const Arg& x) {
  if (tensor_of(op.name, x).dtype() == DType::boolean)
    fail<DTypeError>(op.name, x.location(), "takes numbers, not {}; convert it with to(x, i32)", describe(*x.tensor()));
  return unary(op, x);
}

}  // namespace reel::detail
