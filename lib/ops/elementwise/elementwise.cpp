#include "elementwise.h"

#include <reel/ops/elementwise.h>

#include <algorithm>

#include "../../core/memory_order.h"

namespace reel::detail {

namespace {

DType operand_dtype(const char* op, const Arg& a, const Arg& b, Types types) {
  Location where = a.location();
  DType dtype = common_dtype(op, a, b);
  bool of_integers = types == Types::integers || types == Types::integers_and_bools;
  if (of_integers && is_floating(dtype))
    fail<DTypeError>(op, where, "takes integers or bools, not {}; convert with to(x, i64)", name_of(dtype));
  if (types == Types::floating && !is_floating(dtype)) return DType::f32;
  if ((types == Types::no_bool || types == Types::integers) && dtype == DType::boolean)
    fail<DTypeError>(op, where, "bools cannot be operands; convert one with to(x, i32), or compare them");
  return dtype;
}

DType entry_dtype(const Arg& operand, DType dtype, Types types) {
  return types == Types::comparison || types == Types::extreme ? dtype : arithmetic_dtype(operand, dtype);
}

}  // namespace

BinaryOperands::BinaryOperands(const char* op, const Arg& a, const Arg& b, Types types)
    : dtype(operand_dtype(op, a, b, types)),
      a(op, a, entry_dtype(a, dtype, types), b),
      b(op, b, entry_dtype(b, dtype, types), a) {
  const Tensor &x = *this->a, &y = *this->b;
  check_same_device(op, x, y, a.location());
  if (!broadcast(x.shape(), y.shape(), shape))
    fail<ShapeError>(op, a.location(), "shapes do not broadcast: a {}, b {}", to_string(x.shape()),
                     to_string(y.shape()));
}

bool repeats_elements(const Body& x) {
  if (x.contiguous) return false;
  for (int i = 0; i < x.rank; ++i)
    if (x.strides[i] == 0 && x.dims[i] > 1) return true;
  return false;
}

OutputSpec in_order_of_strided(OutputSpec spec, std::initializer_list<const Tensor*> operands) {
  const Body* like = nullptr;
  for (const Tensor* operand : operands) {
    const Body& x = operand->body();
    if (x.rank != spec.rank || !std::equal(x.dims, x.dims + x.rank, spec.dims)) continue;
    if (x.contiguous || x.numel == 0) return spec;
    bool repeats = repeats_elements(x);
    if (!like || !repeats) like = &x;
    if (!repeats) break;
  }
  if (like && !MemoryOrder(like->dims, like->strides, like->rank).is_logical) spec.order = like;
  return spec;
}

Tensor binary_general(const OpInfo& op, const Arg& a, const Arg& b, Types types) {
  BinaryOperands given(op.name, a, b, types);
  DType dtype = types == Types::comparison ? DType::boolean : given.dtype;
  return invoke(op, {&*given.a, &*given.b},
                in_order_of({given.shape, dtype, given.a->device()}, {&*given.a, &*given.b}), a.location());
}

Tensor unary(const OpInfo& op, const Arg& x) {
  const Tensor& tensor = tensor_of(op.name, x);
  return invoke(op, {&tensor}, elementwise_result(tensor, tensor.dtype()), x.location());
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
