#include "lstm_step.h"

#include <algorithm>
#include <array>
#include <utility>

#include "../../dispatch/autocast.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../registry.h"
#include "recurrent.h"
#include "weight_product.h"

namespace reel::detail {

// lstm_step: p, h, c, W_h → h', the gates i f g o, c';  or x, h, c, W_h, W_x [, b], where p = x W_x + b
//   q = h W_h;  h', c' and the gradients da = dp = dq and dc are those of lstm_cell;  the weights may be rounded
//   dh = da W_hᵀ   dW_h = hᵀ da   dx = da W_xᵀ   dW_x = xᵀ da   db = Σ da
//
// One op in place of three saves the overhead of two, which bounds small steps, and a call within batch_map waits once: see
// "Recurrent layers" in tools/benchmark/README.md.

namespace {

enum StepInput : std::uint8_t { step_x, step_h, step_c, step_W_h, step_W_x, step_bias };
constexpr InputSet all_of_step = inputs({step_x, step_h, step_c, step_W_h, step_W_x, step_bias});

}  // namespace

constexpr OpInfo lstm_step_op{
    .name = "lstm_step",
    .forward =
        [](Call& call) {
          const Body& gates = call.output(1);
          DType rounding = call.attributes<WeightAttributes>().rounding();
          Tensor projected;
          if (call.inputs.size() > step_W_x) {
            projected = allocate(context(), {gates, gates.dtype}, call.op.name, call.where);
            multiply_by_weight(call, projected.body(), call.input(step_x), call.input(step_W_x), rounding);
          }
          // The cell reads all gates of a unit before it writes them.
          multiply_by_weight(call, gates, call.input(step_h), call.input(step_W_h), rounding);
          View bias = call.inputs.size() > step_bias ? View(call.input(step_bias)) : View{};
          recurrent_kernels(call).cell[static_cast<int>(RecurrentCell::lstm)](
              {.h = call.output(0),
               .work = gates,
               .c = call.output(2),
               .p = projected.defined() ? projected.body() : call.input(step_x),
               .q = gates,
               .before = call.input(step_c),
               .bias = bias});
        },
    .gradient =
        [](Gradient& g) {
          auto [da, dc] = lstm_gradients(g);
          bool projects = g.input_count() > step_W_x;
          DType rounding = g.attributes<WeightAttributes>().rounding();
          if (g.wants(step_x))
            g.accumulate(step_x, projects ? times_transposed_weight(g, da, g.saved_input(step_W_x), rounding) : da);
          if (g.wants(step_h)) g.accumulate(step_h, times_transposed_weight(g, da, g.saved_input(step_W_h), rounding));
          if (g.wants(step_c)) g.accumulate(step_c, dc);
          if (g.wants(step_W_h)) g.accumulate_transposed_product(step_W_h, g.saved_input(step_h), da);
          if (projects && g.wants(step_W_x)) g.accumulate_transposed_product(step_W_x, g.saved_input(step_x), da);
          if (g.input_count() > step_bias && g.wants(step_bias)) g.accumulate(step_bias, da);
        },
    .saves_input_for = {inputs({step_W_x}), inputs({step_W_h}), all_of_step, inputs({step_h}), inputs({step_x})},
    .saves_output_for = {0, all_of_step, all_of_step},
    .joining = [](const Call& call) -> Joining {
      InputSet weights = inputs({step_W_h});
      for (std::size_t i = step_W_x; i < call.inputs.size(); ++i) weights |= inputs({static_cast<int>(i)});
      return {.by = Joining::By::rows, .shared = weights, .dropped_outputs = 1 << 1};
    },
    .shares_weight = true,
    .internal = true,
};

bool can_run_lstm_step(std::initializer_list<const Tensor*> tensors) {
  if (is_autocasting()) return false;
  const Body& first = (*tensors.begin())->body();
  if (first.dtype != DType::f32 && first.dtype != DType::f64) return false;
  for (const Tensor* tensor : tensors)
    if (tensor->dtype() != first.dtype || tensor->device() != first.device) return false;
  return true;
}

LSTMState lstm_step(std::span<const Tensor* const> operands, DType rounding, Location where) {
  Tensor x = *operands[step_x], c = contiguous_if_needed(*operands[step_c]), bias;
  std::array<const Tensor*, 6> in{};
  std::copy(operands.begin(), operands.end(), in.begin());
  std::size_t count = operands.size();
  if (count <= step_W_x) x = contiguous_if_needed(x);
  if (count > step_bias) bias = contiguous_if_needed(*operands[step_bias]);
  in[step_x] = &x;
  in[step_c] = &c;
  if (count > step_bias) in[step_bias] = &bias;
  const Shape state{c.size(0), c.size(1)}, gates{c.size(0), 4 * c.size(1)};
  std::array<OutputSpec, 3> specs{OutputSpec(state, c.dtype(), c.device()), OutputSpec(gates, c.dtype(), c.device()),
                                  OutputSpec(state, c.dtype(), c.device())};
  std::array<Tensor, 3> outputs;
  WeightAttributes attributes{static_cast<std::int64_t>(rounding)};
  Call call{lstm_step_op, std::span(in).first(count), bytes_of(attributes), specs, outputs, where};
  invoke(call);
  return {std::move(outputs[0]), std::move(outputs[2])};
}

OpList lstm_step_ops() {
  static constexpr const OpInfo* ops[] = {&lstm_step_op};
  return ops;
}

}  // namespace reel::detail
