#include <reel/ops/elementwise.h>

#include "elementwise.h"
#include "registry.h"

namespace reel {

using namespace detail;

// y = x in another dtype;  dx = d in x's dtype

namespace {

void cast_forward(Call& call) { kernels(call.output().device).copy(call.output(), call.input(0)); }

}  // namespace

constexpr OpInfo cast_op{
    .name = "to",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = cast_forward,
    .gradient = [](Gradient& g) { g.give(0, to(g.output(), g.input_dtype(0))); },
};

// To integers and bools nothing flows back.
constexpr OpInfo cast_to_integer_op{
    .name = "to", .arity = 1, .batching = Batching::elementwise, .forward = cast_forward};

Tensor to(const Arg& x, DType dtype) {
  const Tensor& tensor = tensor_of("to", x);
  if (tensor.dtype() == dtype) return tensor;
  return invoke(is_floating(dtype) ? cast_op : cast_to_integer_op, {&tensor}, {tensor.body(), dtype}, x.location());
}

std::span<const RegisteredOp> detail::cast_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "to", .info = &cast_op},
      {.name = "to", .info = &cast_to_integer_op, .internal = true},
  };
  return ops;
}

}  // namespace reel
