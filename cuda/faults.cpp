#include "faults.h"

#include "../lib/core/invoke.h"
#include "../lib/core/op_error.h"
#include "runtime.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

[[noreturn]] void throw_matrix_fault(const FaultSource& source, std::int64_t number, const char* fault) {
  const Shape& shape = source.shape;
  if (shape.rank() <= 2) fail<Error>(source.op, source.where, "the matrix {}", fault);
  Shape place(std::span(shape.data(), static_cast<std::size_t>(shape.rank() - 2)));
  for (int axis = place.rank(); axis-- > 0; number /= shape[axis]) place[axis] = number % shape[axis];
  fail<Error>(source.op, source.where, "matrix {} of {} {} {}", to_string(place), to_string(shape),
              name_of(source.dtype), fault);
}

}  // namespace

FaultSource running_op() {
  const Context& context = detail::context();
  const Call* call = context.running;
  if (!call) return {"an op", context.resolve({}), {}, DType::f32};
  FaultSource source{call->op.name, context.resolve(call->where), {}, DType::f32};
  if (call->inputs.empty() || !call->inputs[0]->defined()) return source;
  const Body& first = call->input(0);
  source.shape = Shape(std::span(first.dims, static_cast<std::size_t>(first.rank)));
  source.dtype = first.dtype;
  return source;
}

void throw_fault(const FaultRecord& found, const FaultSource& source) {
  switch (found.kind) {
    case Fault::index:
      fail<IndexError>(source.op, source.where, "index {} is out of range for an axis of size {}", found.first,
                       found.second);
    case Fault::class_index:
      fail<IndexError>(source.op, source.where, "the class {} does not lie in [0, {})", found.first, found.second);
    case Fault::probability: fail<Error>(source.op, source.where, "{} is no probability", found.number);
    case Fault::singular: throw_matrix_fault(source, found.first, "is singular");
    case Fault::singular_triangle: throw_matrix_fault(source, found.first, "is singular: it has a 0 on its diagonal");
    case Fault::not_positive_definite: throw_matrix_fault(source, found.first, "is not positive definite");
    case Fault::not_finite: throw_matrix_fault(source, found.first, "holds NaN or infinity");
    case Fault::none: break;
  }
  throw InternalError("a kernel reported no fault");
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
