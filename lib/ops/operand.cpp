#include "operand.h"

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>

#include "../core/dtype_dispatch.h"
#include "../dispatch/device_constant.h"
#include "number.h"

namespace reel::detail {
namespace {

int kind_of(DType dtype) { return dtype == DType::boolean ? 0 : is_floating(dtype) ? 2 : 1; }

DType natural_dtype(Arg::Kind kind) {
  switch (kind) {
    case Arg::Kind::boolean: return DType::boolean;
    case Arg::Kind::integer: return DType::i64;
    default: return DType::f32;
  }
}

// The dtype of the other operand, adjusted for a number or a tensor of rank 0: promoted only if that is of a higher
// kind.
DType adjusted(DType strong, DType weak) { return kind_of(weak) > kind_of(strong) ? promote(strong, weak) : strong; }

bool holds(DType dtype, std::int64_t integer) {
  return is_floating(dtype) || dtype == DType::boolean ||
         with_integer(dtype, [&]<class T>(std::type_identity<T>) { return integer == static_cast<T>(integer); });
}

}  // namespace

DType common_dtype(const char* op, const Arg& a, const Arg& b) {
  if (!a.is_tensor() && !b.is_tensor()) return promote(natural_dtype(a.kind()), natural_dtype(b.kind()));
  if (!b.is_tensor()) return adjusted(tensor_of(op, a).dtype(), natural_dtype(b.kind()));
  if (!a.is_tensor()) return adjusted(tensor_of(op, b).dtype(), natural_dtype(a.kind()));
  const Tensor &x = tensor_of(op, a), &y = tensor_of(op, b);
  if (x.rank() > 0 && y.rank() == 0) return adjusted(x.dtype(), y.dtype());
  if (x.rank() == 0 && y.rank() > 0) return adjusted(y.dtype(), x.dtype());
  return promote(x.dtype(), y.dtype());
}

DType arithmetic_dtype(const Arg& operand, DType dtype) {
  bool exact = operand.rank() > 0 || (operand.is_tensor() && operand.dtype() == dtype);
  return exact || !is_half(dtype) ? dtype : DType::f32;
}

bool is_castable(DType from, DType to) { return kind_of(from) <= kind_of(to); }

void check_fits(const char* op, const Arg& number, DType dtype) {
  if (number.kind() == Arg::Kind::integer && !holds(dtype, number.integer()))
    fail<DTypeError>(op, number.location(), "the number {} does not fit {}; use i64", number.integer(), name_of(dtype));
}

Operand::Operand(const char* op, const Arg& arg, DType dtype, const Arg& beside) {
  if (arg.is_tensor()) {
    tensor_ = &tensor_of(op, arg);
    if (tensor_->dtype() != dtype) {
      made_ = to(Arg(*tensor_, arg.location()), dtype);
      tensor_ = &made_;
    }
    return;
  }
  check_fits(op, arg, dtype);
  Device device = beside.is_tensor() ? beside.tensor()->device() : cpu;
  if (device.type != Device::Type::cpu)
    made_ = device_constant(device, dtype, arg.number(), integer_of(arg, dtype), arg.location());
  if (!made_.defined()) made_ = full({}, arg, {.dtype = dtype, .device = device});
  tensor_ = &made_;
}

}  // namespace reel::detail
