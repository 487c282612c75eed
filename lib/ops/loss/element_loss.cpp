#include <limits>

#include <reel/ops/activation.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>

#include "../../dispatch/invoke.h"
#include "../../record/gradient.h"
#include "../composed_gradient.h"
#include "../elementwise/elementwise.h"
#include "../if_needed.h"
#include "../registry.h"
#include "attributes.h"
#include "loss_operands.h"

// Losses of single elements, f(x, t; parameter), whose formulas are in lib/kernels/formulas/loss.h.

namespace reel {

using namespace detail;

namespace {

// log x, clamped to at least −100, so that neither values nor derivatives are infinite.
Tensor cut_log(const Tensor& x) {
  Tensor low = abs(x) <= 3.7200759760208356e-44;
  return where(low, -100.0, log(where(low, 1.0, x)));
}

// log(1 − x), clamped to at least −100: only x = 1 is close enough to 1 for that.
Tensor cut_log_of_rest(const Tensor& x) {
  Tensor one = x == 1;
  return where(one, -100.0, log1p(-where(one, 0.0, x)));
}

Tensor cut_squares(const Tensor& difference, double delta) {
  Tensor cut = clamp(difference, -delta, delta);
  return cut * (difference - cut * 0.5);
}

Tensor composed_losses(ElementLoss kind, const Tensor& x, const Tensor& t, double parameter) {
  switch (kind) {
    case ElementLoss::squared: return square(x - t);
    case ElementLoss::absolute: return abs(x - t);
    case ElementLoss::huber: return cut_squares(x - t, parameter);
    case ElementLoss::smooth_l1: return cut_squares(x - t, parameter) / parameter;
    case ElementLoss::binary_cross_entropy: return (t - 1.0) * cut_log_of_rest(x) - t * cut_log(x);
    case ElementLoss::logits_cross_entropy:
      return (1.0 - t) * x + softplus(-x, {.threshold = std::numeric_limits<double>::infinity()});
    default: return t * (log(where(t == 0, 1.0, t)) - x);
  }
}

// Differences do not depend on the order of the operands.
bool is_symmetric(ElementLoss kind) { return kind <= ElementLoss::smooth_l1; }

// The derivative of another loss by t.
Tensor target_derivative(ElementLoss kind, const Tensor& x, const Tensor& t) {
  switch (kind) {
    case ElementLoss::binary_cross_entropy: return cut_log_of_rest(x) - cut_log(x);
    case ElementLoss::logits_cross_entropy: return -x;
    default: return log(where(t == 0, 1.0, t)) + to(t != 0, t.dtype()) - x;
  }
}

const ElementLossKernels& kernels_of(Device device, std::int64_t kind) { return kernels(device).loss->elements[kind]; }

// Fused; runs when nothing records.
constexpr OpInfo element_loss_gradient_op{
    .name = "element_loss_gradient",
    .forward =
        [](Call& call) {
          const auto& [kind, parameter] = call.attributes<ElementLossAttributes>();
          kernels_of(call.output().device, kind)
              .gradient(call.output(), call.input(0), call.input(1), call.input(2), parameter);
        },
    .joining = by_elements,
    .internal = true,
};

void accumulate_gradients(Gradient& g) {
  const auto& [number, parameter] = g.attributes<ElementLossAttributes>();
  auto kind = static_cast<ElementLoss>(number);
  if (g.recording())
    return accumulate_composed(g, [&](std::span<const Tensor> in) -> std::vector<Tensor> {
      return {composed_losses(kind, widened(in[0]), widened(in[1]), parameter)};
    });
  const Tensor &d = g.output(), &x = g.saved_input(0), &t = g.saved_input(1);
  // In a batch an operand that all examples share is broadcast.
  auto fused = [&](const Tensor& by, const Tensor& other) {
    return invoke(element_loss_gradient_op, {&d, &by, &other}, in_order_of({d.body(), by.dtype()}, {&by, &other}),
                  g.where(), g.attribute_bytes());
  };
  if (g.wants(0)) g.accumulate(0, fused(x, t));
  if (!g.wants(1)) return;
  g.accumulate(1, is_symmetric(kind) ? fused(t, x)
                                     : to_if_needed(d * target_derivative(kind, widened(x), widened(t)), t.dtype()));
}

constexpr OpInfo element_loss(const char* name) {
  return {.name = name,
          .forward =
              [](Call& call) {
                const auto& [kind, parameter] = call.attributes<ElementLossAttributes>();
                kernels_of(call.output().device, kind).losses(call.output(), call.input(0), call.input(1), parameter);
              },
          .gradient = accumulate_gradients,
          .saves_input_for = {inputs({0, 1}), inputs({0, 1})},
          .joining = by_elements};
}

// By ElementLoss.
constexpr OpInfo element_loss_op[] = {element_loss("mse_loss"),
                                      element_loss("l1_loss"),
                                      element_loss("huber_loss"),
                                      element_loss("smooth_l1_loss"),
                                      element_loss("binary_cross_entropy"),
                                      element_loss("binary_cross_entropy_with_logits"),
                                      element_loss("kl_div")};

}  // namespace

Tensor detail::element_losses(ElementLoss kind, const Compared& given, double parameter) {
  const Tensor &x = given.input, &t = given.target;
  if (!kernels_of(x.device(), static_cast<std::int64_t>(kind)).losses)
    return composed_losses(kind, widened(x), widened(t), parameter);
  ElementLossAttributes attributes{static_cast<std::int64_t>(kind), parameter};
  return invoke(element_loss_op[static_cast<int>(kind)], {&x, &t},
                in_order_of({x.body(), x.dtype() == DType::f64 ? DType::f64 : DType::f32}, {&x, &t}), given.where,
                bytes_of(attributes));
}

OpList detail::element_loss_ops() {
  static constexpr const OpInfo* ops[] = {&element_loss_op[0], &element_loss_op[1],      &element_loss_op[2],
                                          &element_loss_op[3], &element_loss_op[4],      &element_loss_op[5],
                                          &element_loss_op[6], &element_loss_gradient_op};
  return ops;
}

}  // namespace reel
