#include "loss_operands.h"
#include "../../dispatch/autocast.h"
#include "../if_needed.h"

#include <reel/ops/elementwise.h>
#include <reel/ops/reduce.h>

namespace reel {

using namespace detail;

Tensor detail::reduced(const Tensor& losses, LossReduction reduction, DType dtype) {
  switch (reduction) {
    case LossReduction::none: return to_if_needed(losses, dtype);
    case LossReduction::sum: return to_if_needed(sum(losses), dtype);
    case LossReduction::mean: break;
  }
  return to_if_needed(mean(losses), dtype);
}

void detail::check_like(const char* op, const Tensor& x, const Tensor& other, const char* role, Location where) {
  check_floating(op, other, where);
  if (other.dtype() != x.dtype())
    fail<DTypeError>(op, where, "the {} {} does not have the input's dtype {}; convert it", role, describe(other),
                     name_of(x.dtype()));
  check_same_device(op, x, other, where);
}

Tensor detail::factor(const char* op, const Tensor& x, const Tensor& weight, const char* role, DType dtype,
                      Location where) {
  check_floating(op, weight, where);
  const Tensor given = autocast_operand(Precision::full, weight, where);
  if (given.dtype() != dtype)
    fail<DTypeError>(op, where, "the {} {} does not have the input's dtype {}; convert it", role, describe(given),
                     name_of(dtype));
  check_same_device(op, x, given, where);
  Shape shape;
  if (!broadcast(x.shape(), given.shape(), shape) || shape != x.shape())
    fail<ShapeError>(op, where, "the {} {} does not broadcast to the input {}", role, to_string(given.shape()),
                     to_string(x.shape()));
  return widened(given);
}

Compared::Compared(const char* op, const Arg& given_input, const Arg& given_target)
    : where(given_input.location()), caller(where, op) {
  const AutocastArg input_arg(Precision::full, given_input), target_arg(Precision::full, given_target);
  const Tensor &x = tensor_of(op, input_arg), &t = tensor_of(op, target_arg);
  check_floating(op, x, where);
  check_like(op, x, t, "target", where);
  if (x.shape() != t.shape())
    fail<ShapeError>(op, where, "the input {} and the target {} have different shapes", to_string(x.shape()),
                     to_string(t.shape()));
  dtype = x.dtype();
  input = x;
  target = t;
}

}  // namespace reel
