#include <reel/ops/softmax.h>

#include <reel/ops/comparison.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>

#include "../../core/axis_last.h"
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

// Runs an op along an axis of x. The kernels of other devices work along the last one.
Tensor along_axis(const OpInfo& op, const Tensor& x, int axis, const Tensor* mask, Location where) {
  if (x.rank() > 0) axis = check_axis(op.name, axis, x, where);
  if (x.device() != cpu && axis < x.rank() - 1) {
    Tensor flags = mask ? transpose(Arg(*mask, where), axis, -1) : Tensor();
    Tensor y = along_axis(op, transpose(Arg(x, where), axis, -1), -1, mask ? &flags : nullptr, where);
    return transpose(Arg(y, where), axis, -1);
  }
  const Tensor* inputs[] = {&x, mask};
  const OutputSpec spec(x.body(), x.dtype());
  Tensor output;
  AxisAttributes attributes{x.rank() > 0 ? axis : 0};
  Call call{op, {inputs, mask ? 2u : 1u}, bytes_of(attributes), {&spec, 1}, {&output, 1}, where};
  invoke(call);
  return output;
}

Tensor normalised(const OpInfo& op, const Arg& x, int axis, const SoftmaxOptions& options) {
  const Tensor& tensor = tensor_of(op.name, x);
  Location where = x.location();
  check_floating(op.name, tensor, where);
  if (!options.mask.defined()) return along_axis(op, tensor, axis, nullptr, where);
  const Tensor& mask = options.mask;
  if (mask.dtype() != DType::boolean) fail<DTypeError>(op.name, where, "the mask {} is not of bools", describe(mask));
  check_same_device(op.name, tensor, mask, where);
  Shape shape;
  if (!broadcast(tensor.shape(), mask.shape(), shape) || !(shape == tensor.shape()))
    fail<ShapeError>(op.name, where, "the mask {} does not broadcast to {}", describe(mask), describe(tensor));
  Tensor wide = expand_if_needed(Arg(mask, where), tensor.shape());
  return along_axis(op, tensor, axis, &wide, where);
}

int axis_of(const auto& call) { return static_cast<int>(call.template attributes<AxisAttributes>().axis); }

template <KernelTable::UnaryKernel KernelTable::*kernel, KernelTable::BinaryKernel ActivationKernels::*masked>
void forward(Call& call) {
  const KernelTable& table = kernels(call.output().device);
  int axis = axis_of(call);
  AxisLast y(call.output(), axis), x(call.input(0), axis);
  if (call.inputs.size() == 1)
    (table.*kernel)(y, x);
  else
    (table.activation->*masked)(y, x, AxisLast(call.input(1), axis));
}

// Fused gradients have no gradient of their own: they run only when nothing records.
template <KernelTable::BinaryKernel KernelTable::*kernel>
constexpr OpInfo fused_gradient(const char* name) {
  return {.name = name,
          .forward =
              [](Call& call) {
                int axis = axis_of(call);
                AxisLast out(call.output(), axis), d(call.input(0), axis), y(call.input(1), axis);
                (kernels(call.output().device).*kernel)(out, d, y);
              },
          .internal = true};
}

constexpr OpInfo softmax_gradient_op = fused_gradient<&KernelTable::softmax_gradient>("softmax_gradient");
constexpr OpInfo log_softmax_gradient_op = fused_gradient<&KernelTable::log_softmax_gradient>("log_softmax_gradient");

Tensor run_fused(const OpInfo& op, const Tensor& d, Gradient& g) {
  const Tensor& y = g.saved_output();
  return invoke(op, {&d, &y}, {y.body(), y.dtype()}, g.where(), g.attribute_bytes());
}

Tensor sum_along_axis(const Tensor& x, const Gradient& g) {
  return x.rank() == 0 ? x : sum(x, {axis_of(g)}, {.keepdims = true});
}

Joining joining(const Call& call) { return call.input(0).rank == 0 ? Joining() : by_other_axes(call); }

}  // namespace

// y = e^x / Σ e^x;  dx = y (d − Σ d y)

constexpr OpInfo softmax_op{
    .name = "softmax",
    .forward = forward<&KernelTable::softmax, &ActivationKernels::masked_softmax>,
    .gradient =
        [](Gradient& g) {
          const Tensor &d = g.output(), &y = g.saved_output();
          if (!g.recording()) return g.accumulate(0, run_fused(softmax_gradient_op, d, g));
          g.accumulate(0, y * (d - sum_along_axis(d * y, g)));
        },
    .saves_output_for = {inputs({0})},
    .precision = Precision::full,
    .joining = joining,
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
          g.accumulate(in_x, d - exp(y) * sum_along_axis(d, g));
        },
    .saves_input_for = {0, inputs({0})},
    .saves_output_for = {inputs({0})},
    .precision = Precision::full,
    .joining = joining,
};

Tensor log_softmax(const Arg& x, int axis, const SoftmaxOptions& options) {
  return normalised(log_softmax_op, x, axis, options);
}

OpList detail::softmax_ops() {
  static constexpr const OpInfo* ops[] = {&softmax_op, &log_softmax_op, &softmax_gradient_op, &log_softmax_gradient_op};
  return ops;
}

}  // namespace reel
