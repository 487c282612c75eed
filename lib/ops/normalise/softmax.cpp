#include <reel/ops/softmax.h>

#include <reel/ops/comparison.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>

#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/activation.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../joining.h"
#include "../registry.h"

namespace reel {

using namespace detail;

namespace {

// Runs a kernel, which works along the last axis, on a transposed view for other axes.
Tensor along_last(const OpInfo& op, const Tensor& x, int axis, const Tensor* mask, Location where) {
  auto run = [&](const Tensor& tensor, const Tensor& flags) {
    const Tensor* inputs[] = {&tensor, &flags};
    const OutputSpec spec(tensor.body(), tensor.dtype());
    Tensor output;
    Call call{op, {inputs, mask ? 2u : 1u}, {}, {&spec, 1}, {&output, 1}, where};
    invoke(call);
    return output;
  };
  if (x.rank() == 0) return run(x, mask ? *mask : x);
  axis = check_axis(op.name, axis, x, where);
  if (axis == x.rank() - 1) return run(x, mask ? *mask : x);
  Tensor axis_last = transpose(Arg(x, where), axis, -1);
  Tensor result = run(axis_last, mask ? transpose(Arg(*mask, where), axis, -1) : axis_last);
  return transpose(Arg(result, where), axis, -1);
}

Tensor normalised(const OpInfo& op, const Arg& x, int axis, const SoftmaxOptions& options) {
  const Tensor& tensor = tensor_of(op.name, x);
  Location where = x.location();
  check_floating(op.name, tensor, where);
  if (!options.mask.defined()) return along_last(op, tensor, axis, nullptr, where);
  const Tensor& mask = options.mask;
  if (mask.dtype() != DType::boolean) fail<DTypeError>(op.name, where, "the mask {} is not of bools", describe(mask));
  check_same_device(op.name, tensor, mask, where);
  Shape shape;
  if (!broadcast(tensor.shape(), mask.shape(), shape) || !(shape == tensor.shape()))
    fail<ShapeError>(op.name, where, "the mask {} does not broadcast to {}", describe(mask), describe(tensor));
  Tensor wide = expand_if_needed(Arg(mask, where), tensor.shape());
  return along_last(op, tensor, axis, &wide, where);
}

template <KernelTable::UnaryKernel KernelTable::*kernel, KernelTable::BinaryKernel ActivationKernels::*masked>
void forward(Call& call) {
  const KernelTable& table = kernels(call.output().device);
  if (call.inputs.size() == 1)
    (table.*kernel)(call.output(), call.input(0));
  else
    (table.activation->*masked)(call.output(), call.input(0), call.input(1));
}

// Fused gradients have no gradient of their own: they run only when nothing records.
template <KernelTable::BinaryKernel KernelTable::*kernel>
constexpr OpInfo fused_gradient(const char* name) {
  return {.name = name,
          .forward =
              [](Call& call) { (kernels(call.output().device).*kernel)(call.output(), call.input(0), call.input(1)); },
          .internal = true};
}

constexpr OpInfo softmax_gradient_op = fused_gradient<&KernelTable::softmax_gradient>("softmax_gradient");
constexpr OpInfo log_softmax_gradient_op = fused_gradient<&KernelTable::log_softmax_gradient>("log_softmax_gradient");

Tensor run_fused(const OpInfo& op, const Tensor& d, Gradient& g) {
  const Tensor& y = g.saved_output();
  return invoke(op, {&d, &y}, {y.body(), y.dtype()}, g.where());
}

Tensor sum_last(const Tensor& x) { return x.rank() == 0 ? x : sum(x, {-1}, {.keepdims = true}); }

}  // namespace

// y = e^x / Σ e^x;  dx = y (d − Σ d y)

constexpr OpInfo softmax_op{
    .name = "softmax",
    .forward = forward<&KernelTable::softmax, &ActivationKernels::masked_softmax>,
    .gradient =
        [](Gradient& g) {
          const Tensor &d = g.output(), &y = g.saved_output();
          if (!g.recording()) return g.accumulate(0, run_fused(softmax_gradient_op, d, g));
          g.accumulate(0, y * (d - sum_last(d * y)));
        },
    .saves_output_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_leading_axes,
};

Tensor softmax(const Arg& x, int axis, const SoftmaxOptions& options) {
  return normalised(softmax_op, x, axis, options);
}

// y = x − log Σ e^x;  dx = d − e^y Σ d

constexpr OpInfo log_softmax_op{
    .name = "log_softmax",
    .forward = forward<&KernelTable::log_softmax, &ActivationKernels::masked_log_softmax>,
    .gradient =
        [](Gradient& g) {
          enum { in_x, in_mask };
          const Tensor& y = g.saved_output();
          // Masked results are constant, so their gradients are ignored.
          Tensor d = g.input_count() == 1 ? g.output() : where(g.saved_input(in_mask), g.output(), 0.0);
          if (!g.recording()) return g.accumulate(in_x, run_fused(log_softmax_gradient_op, d, g));
          g.accumulate(in_x, d - exp(y) * sum_last(d));
        },
    .saves_input_for = {0, inputs({0})},
    .saves_output_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_leading_axes,
};

Tensor log_softmax(const Arg& x, int axis, const SoftmaxOptions& options) {
  return normalised(log_softmax_op, x, axis, options);
}

OpList detail::softmax_ops() {
  static constexpr const OpInfo* ops[] = {&softmax_op, &log_softmax_op, &softmax_gradient_op, &log_softmax_gradient_op};
  return ops;
}

}  // namespace reel
