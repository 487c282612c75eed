#include <reel/ops/softmax.h>

#include <reel/ops/elementwise.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>

#include "../core/invoke.h"
#include "../core/kernel_table.h"
#include "../core/op_error.h"
#include "../tape/gradient.h"
#include "registry.h"

namespace reel {

using namespace detail;

namespace {

// The kernels work along the last axis; another one is brought there by a view.
Tensor along_last(const OpInfo& op, const Arg& x, int axis) {
  const Tensor& tensor = tensor_of(op.name, x);
  Location where = x.location();
  check_floating(op.name, tensor, where);
  if (tensor.rank() == 0) return invoke(op, {&tensor}, {tensor.body(), tensor.dtype()}, where);
  axis = check_axis(op.name, axis, tensor, where);
  if (axis == tensor.rank() - 1) return invoke(op, {&tensor}, {tensor.body(), tensor.dtype()}, where);
  Tensor turned = transpose(x, axis, -1);
  Tensor result = invoke(op, {&turned}, {turned.body(), turned.dtype()}, where);
  return transpose(Arg(result, where), axis, -1);
}

// The fused gradients have none of their own: they run when nothing records.
template <KernelTable::BinaryKernel KernelTable::*kernel>
constexpr OpInfo fused_gradient(const char* name) {
  return {.name = name, .arity = 2, .batching = Batching::stack, .forward = [](Call& call) {
            (kernels(call.output().device).*kernel)(call.output(), call.input(0), call.input(1));
          }};
}

constexpr OpInfo softmax_gradient_op = fused_gradient<&KernelTable::softmax_gradient>("softmax_gradient");
constexpr OpInfo log_softmax_gradient_op = fused_gradient<&KernelTable::log_softmax_gradient>("log_softmax_gradient");

Tensor run_fused(const OpInfo& op, Gradient& g) {
  const Tensor &d = g.output(), &y = g.saved_output();
  return invoke(op, {&d, &y}, {y.body(), y.dtype()}, g.where());
}

Tensor sum_last(const Tensor& x) { return x.rank() == 0 ? x : sum(x, {-1}, {.keepdims = true}); }

}  // namespace

// y = e^x / Σ e^x;  dx = y (d − Σ d y)

constexpr OpInfo softmax_op{
    .name = "softmax",
    .arity = 1,
    .batching = Batching::stack,
    .forward = [](Call& call) { kernels(call.output().device).softmax(call.output(), call.input(0)); },
    .gradient =
        [](Gradient& g) {
          if (!g.recording()) return g.give(0, run_fused(softmax_gradient_op, g));
          const Tensor &d = g.output(), &y = g.saved_output();
          g.give(0, y * (d - sum_last(d * y)));
        },
    .saves_output_for = {inputs({0})},
};

Tensor softmax(const Arg& x, int axis) { return along_last(softmax_op, x, axis); }

// y = x − log Σ e^x;  dx = d − e^y Σ d

constexpr OpInfo log_softmax_op{
    .name = "log_softmax",
    .arity = 1,
    .batching = Batching::stack,
    .forward = [](Call& call) { kernels(call.output().device).log_softmax(call.output(), call.input(0)); },
    .gradient =
        [](Gradient& g) {
          if (!g.recording()) return g.give(0, run_fused(log_softmax_gradient_op, g));
          const Tensor &d = g.output(), &y = g.saved_output();
          g.give(0, d - exp(y) * sum_last(d));
        },
    .saves_output_for = {inputs({0})},
};

Tensor log_softmax(const Arg& x, int axis) { return along_last(log_softmax_op, x, axis); }

std::span<const RegisteredOp> detail::softmax_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "softmax", .info = &softmax_op},
      {.name = "log_softmax", .info = &log_softmax_op},
      {.name = "softmax_gradient", .info = &softmax_gradient_op, .internal = true},
      {.name = "log_softmax_gradient", .info = &log_softmax_gradient_op, .internal = true},
  };
  return ops;
}

}  // namespace reel
