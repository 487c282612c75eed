#include "../if_needed.h"
#include "recurrent.h"

#include <array>
#include <limits>
#include <string>
#include <utility>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/matmul.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>
#include <reel/ops/stop_gradient.h>

#include "../../dispatch/autocast.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../registry.h"
#include "lstm_step.h"

namespace reel {

using namespace detail;

namespace {

constexpr int index_of(RecurrentCell cell) { return static_cast<int>(cell); }

View view_of_input(const Call& call, std::size_t i) {
  if (i < call.inputs.size()) return call.input(static_cast<int>(i));
  return {};
}

// Runs an op whose outputs have the rows of `like`, and widths of several blocks.
template <std::size_t count>
void run(const OpInfo& op, std::span<const Tensor* const> inputs, const Tensor& like, std::int64_t size,
         const int (&blocks)[count], Tensor (&outputs)[count], Location where) {
  Shape shapes[count];
  for (std::size_t i = 0; i < count; ++i) shapes[i] = {like.size(0), blocks[i] * size};
  auto specs = [&]<std::size_t... i>(std::index_sequence<i...>) {
    return std::array<OutputSpec, count>{OutputSpec(shapes[i], like.dtype(), like.device())...};
  }(std::make_index_sequence<count>());
  Call call{op, inputs, {}, specs, outputs, where};
  invoke(call);
}

Tensor joined(std::initializer_list<Tensor> gates) { return concat(gates, 1); }

}  // namespace

// lstm_cell: p, q, c [, b] → h', the gates i f g o, c'.
//   t = tanh(c')   e = dc' + dh' o (1 − t²)
//   da_i = e g i (1 − i)   da_f = e c f (1 − f)   da_g = e i (1 − g²)   da_o = dh' t o (1 − o)
//   dp = dq = da   db = Σ da   dc = e f;  second-order gradients of the gates are added before their slopes are applied

namespace {

constexpr OpInfo lstm_cell_gradient_op{
    .name = "lstm_cell_gradient",
    .forward =
        [](Call& call) {
          recurrent_kernels(call).cell_gradient[index_of(RecurrentCell::lstm)]({.dp = call.output(0),
                                                                                .dq = {},
                                                                                .d_before = call.output(1),
                                                                                .dh = call.input(0),
                                                                                .dc = call.input(1),
                                                                                .work = call.input(2),
                                                                                .before = call.input(3),
                                                                                .after = call.input(4)});
        },
    .internal = true,
};

LSTMGradients fused_lstm_gradients(Gradient& g) {
  enum { in_p, in_q, in_c, in_b };
  enum { out_h, out_gates, out_c };
  Tensor dh = contiguous_if_needed(g.output(out_h)), dc = contiguous_if_needed(g.output(out_c));
  const Tensor &gates = g.saved_output(out_gates), &before = g.saved_input(in_c), &after = g.saved_output(out_c);
  const Tensor* inputs[] = {&dh, &dc, &gates, &before, &after};
  Tensor outputs[2];
  run(lstm_cell_gradient_op, inputs, dh, dh.size(1), {4, 1}, outputs, g.where());
  return {std::move(outputs[0]), std::move(outputs[1])};
}

LSTMGradients composed_lstm_gradients(Gradient& g) {
  enum { in_p, in_q, in_c, in_b };
  enum { out_h, out_gates, out_c };
  const Tensor &dh = g.output(out_h), &before = g.saved_input(in_c);
  std::vector<Tensor> gates = split(g.saved_output(out_gates), dh.size(1), 1);
  const Tensor &i = gates[0], &f = gates[1], &c = gates[2], &o = gates[3];
  Tensor shown = tanh(g.saved_output(out_c));
  Tensor e = g.output(out_c) + dh * o * (1 - square(shown));
  Tensor by_gates = joined({e * c, e * before, e * i, dh * shown});
  if (g.has_output(out_gates)) by_gates = by_gates + g.output(out_gates);
  Tensor slopes = joined({i * (1 - i), f * (1 - f), 1 - square(c), o * (1 - o)});
  return {by_gates * slopes, e * f};
}

}  // namespace

LSTMGradients detail::lstm_gradients(Gradient& g) {
  enum { out_h, out_gates, out_c };
  bool composed = g.recording() || g.has_output(out_gates);
  return composed ? composed_lstm_gradients(g) : fused_lstm_gradients(g);
}

constexpr OpInfo lstm_cell_op{
    .name = "lstm_cell",
    .forward =
        [](Call& call) {
          recurrent_kernels(call).cell[index_of(RecurrentCell::lstm)]({.h = call.output(0),
                                                                       .work = call.output(1),
                                                                       .c = call.output(2),
                                                                       .p = call.input(0),
                                                                       .q = call.input(1),
                                                                       .before = call.input(2),
                                                                       .bias = view_of_input(call, 3)});
        },
    .gradient =
        [](Gradient& g) {
          enum { in_p, in_q, in_c, in_b };
          auto [da, dc] = lstm_gradients(g);
          g.accumulate(in_p, da);
          g.accumulate(in_q, da);
          g.accumulate(in_c, dc);
          if (g.input_count() > 3 && g.wants(in_b)) g.accumulate(in_b, da);
        },
    .saves_input_for = {0, 0, inputs({0, 1, 2, 3})},
    .saves_output_for = {0, inputs({0, 1, 2, 3}), inputs({0, 1, 2, 3})},
    .joining = [](const Call& call) -> Joining {
      InputSet bias = call.inputs.size() > 3 ? inputs({3}) : InputSet{};
      return {.by = Joining::By::rows, .shared = bias, .dropped_outputs = 1 << 1};
    },
};

// gru_cell: p, q, h, b → h', r z n m.
//   da_n = (dh' (1 − z) + dn) (1 − n²)   da_z = (dh' (h − n) + dz) z (1 − z)   da_r = (da_n m + dr) r (1 − r)
//   dm' = da_n r + dm   dp = da_r, da_z, da_n   dq = da_r, da_z, dm'   db = Σ (da_r, da_z, da_n, dm')   dh = dh' z
//   where dr, dz, dn, dm are the second-order gradients of the second output

namespace {

constexpr OpInfo gru_cell_gradient_op{
    .name = "gru_cell_gradient",
    .forward =
        [](Call& call) {
          recurrent_kernels(call).cell_gradient[index_of(RecurrentCell::gru)]({.dp = call.output(0),
                                                                               .dq = call.output(1),
                                                                               .d_before = call.output(2),
                                                                               .dh = call.input(0),
                                                                               .dc = {},
                                                                               .work = call.input(1),
                                                                               .before = call.input(2),
                                                                               .after = {}});
        },
    .internal = true,
};

struct GRUGradients {
  Tensor dp, dq, dh;
};

GRUGradients fused_gru_gradients(Gradient& g) {
  enum { in_p, in_q, in_h, in_b };
  enum { out_h, out_work };
  Tensor d = contiguous_if_needed(g.output(out_h));
  const Tensor &work = g.saved_output(out_work), &before = g.saved_input(in_h);
  const Tensor* inputs[] = {&d, &work, &before};
  Tensor outputs[3];
  run(gru_cell_gradient_op, inputs, d, d.size(1), {3, 3, 1}, outputs, g.where());
  return {std::move(outputs[0]), std::move(outputs[1]), std::move(outputs[2])};
}

GRUGradients composed_gru_gradients(Gradient& g) {
  enum { in_p, in_q, in_h, in_b };
  enum { out_h, out_work };
  const Tensor &d = g.output(out_h), &before = g.saved_input(in_h);
  std::vector<Tensor> work = split(g.saved_output(out_work), d.size(1), 1),
                      more = split(g.output(out_work), d.size(1), 1);
  const Tensor &r = work[0], &z = work[1], &n = work[2], &m = work[3];
  Tensor by_n = (d * (1 - z) + more[2]) * (1 - square(n));
  Tensor by_z = (d * (before - n) + more[1]) * z * (1 - z);
  Tensor by_r = (by_n * m + more[0]) * r * (1 - r);
  return {joined({by_r, by_z, by_n}), joined({by_r, by_z, by_n * r + more[3]}), d * z};
}

}  // namespace

constexpr OpInfo gru_cell_op{
    .name = "gru_cell",
    .forward =
        [](Call& call) {
          recurrent_kernels(call).cell[index_of(RecurrentCell::gru)]({.h = call.output(0),
                                                                      .work = call.output(1),
                                                                      .c = {},
                                                                      .p = call.input(0),
                                                                      .q = call.input(1),
                                                                      .before = call.input(2),
                                                                      .bias = call.input(3)});
        },
    .gradient =
        [](Gradient& g) {
          enum { in_p, in_q, in_h, in_b };
          enum { out_h, out_work };
          bool composed = g.recording() || g.has_output(out_work);
          auto [dp, dq, dh] = composed ? composed_gru_gradients(g) : fused_gru_gradients(g);
          g.accumulate(in_p, dp);
          g.accumulate(in_q, dq);
          g.accumulate(in_h, dh);
          if (g.wants(in_b)) g.accumulate(in_b, gru_bias_gradient(dp, dq));
        },
    .saves_input_for = {0, 0, inputs({0, 1, 2, 3})},
    .saves_output_for = {0, inputs({0, 1, 2, 3})},
    .joining = [](const Call&) -> Joining {
      return {.by = Joining::By::rows, .shared = inputs({3}), .dropped_outputs = 1 << 1};
    },
};

Tensor detail::gru_bias_gradient(const Tensor& dp, const Tensor& dq) {
  return concat(
      {sum_to_if_needed(dp, {dp.size(1)}), sum_to_if_needed(slice(dq, 1, dq.size(1) / 3 * 2), {dq.size(1) / 3})});
}

// rnn_cell: p, q, b → h' = act(p + q + b).  da = dh' act'(h'), which is 1 − h'² for tanh, and for relu 0 where h' = 0

namespace {

constexpr OpInfo rnn_cell_gradient_op{
    .name = "rnn_cell_gradient",
    .forward =
        [](Call& call) {
          int cell = index_of(call.attributes<CellActivationAttributes>().cell());
          recurrent_kernels(call).cell_gradient[cell]({.dp = call.output(),
                                                       .dq = {},
                                                       .d_before = {},
                                                       .dh = call.input(0),
                                                       .dc = {},
                                                       .work = {},
                                                       .before = {},
                                                       .after = call.input(1)});
        },
    .internal = true,
};

}  // namespace

constexpr OpInfo rnn_cell_op{
    .name = "rnn_cell",
    .forward =
        [](Call& call) {
          int cell = index_of(call.attributes<CellActivationAttributes>().cell());
          recurrent_kernels(call).cell[cell]({.h = call.output(),
                                              .work = {},
                                              .c = {},
                                              .p = call.input(0),
                                              .q = call.input(1),
                                              .before = {},
                                              .bias = call.input(2)});
        },
    .gradient =
        [](Gradient& g) {
          enum { in_p, in_q, in_b };
          Tensor d = contiguous_if_needed(g.output()), da;
          const Tensor& h = g.saved_output();
          if (!g.recording())
            da = invoke(rnn_cell_gradient_op, {&d, &h}, {h.body(), h.dtype()}, g.where(), g.attribute_bytes());
          else if (g.attributes<CellActivationAttributes>().cell() == RecurrentCell::rnn_tanh)
            da = d * (1 - square(h));
          else
            da = where(h == 0, 0.0, d);
          g.accumulate(in_p, da);
          g.accumulate(in_q, da);
          if (g.wants(in_b)) g.accumulate(in_b, da);
        },
    .saves_output_for = {inputs({0, 1, 2})},
    .joining = [](const Call&) -> Joining { return {.by = Joining::By::rows, .shared = inputs({2})}; },
};

// The public functions' common parts: checks, and conversion of halves to f32.

void detail::check_fits_input(const char* op, const char* what, const Tensor& tensor, const Shape& shape,
                              const Tensor& x, Location where) {
  if (!tensor.defined()) fail<Error>(op, where, "{} is an undefined tensor", what);
  if (tensor.dtype() != x.dtype())
    fail<DTypeError>(op, where, "{} {} is not of the input's dtype {}; convert it with to({}, {})", what,
                     describe(tensor), name_of(x.dtype()), what, name_of(x.dtype()));
  if (tensor.shape() != shape)
    fail<ShapeError>(op, where, "{} {} is not {}, which goes with the input {}", what, describe(tensor),
                     to_string(shape), to_string(x.shape()));
  check_same_device(op, x, tensor, where);
}

std::int64_t detail::check_weights(const char* op, RecurrentCell cell, const RecurrentWeights& weights,
                                   std::int64_t width, const Tensor& x, Location where) {
  CellForm form = form_of(cell);
  const Tensor& W_h = weights.W_h;
  if (!W_h.defined()) fail<Error>(op, where, "W_h is an undefined tensor");
  std::int64_t size = W_h.rank() == 2 ? W_h.size(0) : -1;
  if (size <= 0 || size != W_h.size(1) / form.gates || W_h.size(1) % form.gates != 0)
    fail<ShapeError>(op, where, "W_h {} is not (H, {}) with an H of at least 1", describe(W_h),
                     form.gates == 1 ? "H" : std::to_string(form.gates) + " H");
  check_fits_input(op, "W_h", W_h, {size, form.gates * size}, x, where);
  check_fits_input(op, "W_x", weights.W_x, {width, form.gates * size}, x, where);
  if (weights.bias.defined()) check_fits_input(op, "bias", weights.bias, {form.bias * size}, x, where);
  rounding_of(op, weights.weight_dtype, W_h.dtype(), where);
  return size;
}

RecurrentWeights detail::autocast_operand(const RecurrentWeights& weights, Location where) {
  auto full = [&](const Tensor& weight) { return autocast_operand(Precision::full, weight, where); };
  return {full(weights.W_x), full(weights.W_h), full(weights.bias), weights.weight_dtype};
}

Tensor detail::bias_of(RecurrentCell cell, const RecurrentWeights& weights) {
  const Tensor& W_h = weights.W_h;
  if (!weights.bias.defined())
    return zeros({form_of(cell).bias * W_h.size(0)},
                 {.dtype = size_of(W_h.dtype()) == 2 ? DType::f32 : W_h.dtype(), .device = W_h.device()});
  return contiguous_if_needed(widened(weights.bias));
}

LSTMState detail::run_cell(RecurrentCell cell, const Tensor& p, const Tensor& q, const Tensor& before,
                           const Tensor& bias, Location where) {
  Tensor in_p = contiguous_if_needed(p), in_q = contiguous_if_needed(q),
         carried = before.defined() ? contiguous_if_needed(before) : before;
  std::int64_t size = p.size(1) / form_of(cell).gates;
  if (cell == RecurrentCell::lstm) {
    const Tensor* inputs[] = {&in_p, &in_q, &carried, &bias};
    Tensor outputs[3];
    run(lstm_cell_op, std::span(inputs, bias.defined() ? 4 : 3), in_p, size, {1, 4, 1}, outputs, where);
    return {std::move(outputs[0]), std::move(outputs[2])};
  }
  if (cell == RecurrentCell::gru) {
    const Tensor* inputs[] = {&in_p, &in_q, &carried, &bias};
    Tensor outputs[2];
    run(gru_cell_op, inputs, in_p, size, {1, 4}, outputs, where);
    return {std::move(outputs[0]), {}};
  }
  CellActivationAttributes attributes{
      static_cast<std::int64_t>(cell == RecurrentCell::rnn_relu ? RNNActivation::relu : RNNActivation::tanh)};
  return {invoke(rnn_cell_op, {&in_p, &in_q, &bias}, {in_p.body(), in_p.dtype()}, where, bytes_of(attributes)), {}};
}

namespace {

// One step of a cell on a user's tensors; `before` is c for lstm, and h for other cells.
LSTMState step(const char* op, RecurrentCell cell, const Arg& given_x, const Tensor& given_h,
               const Tensor& given_before, const RecurrentWeights& given_weights) {
  Location where = given_x.location();
  OpScope caller(where, op);
  const AutocastArg x(Precision::full, given_x);
  const Tensor& input = tensor_of(op, x);
  const Tensor h = autocast_operand(Precision::full, given_h, where),
               before = autocast_operand(Precision::full, given_before, where);
  const RecurrentWeights weights = autocast_operand(given_weights, where);
  check_floating(op, input, where);
  if (input.rank() != 2) fail<ShapeError>(op, where, "the input {} is not (B, I)", describe(input));
  std::int64_t size = check_weights(op, cell, weights, input.size(1), input, where);
  DType rounding = rounding_of(op, weights.weight_dtype, weights.W_h.dtype(), where);
  Shape shape{input.size(0), size};
  check_fits_input(op, "h", h, shape, input, where);
  if (cell == RecurrentCell::lstm) {
    check_fits_input(op, "c", before, shape, input, where);
    const Tensor* operands[] = {&input, &h, &before, &weights.W_h, &weights.W_x, &weights.bias};
    if (can_run_lstm_step({&input}))
      return lstm_step(std::span(operands, weights.bias.defined() ? 6 : 5), rounding, where);
  }
  auto product = [&](const Tensor& x, const Tensor& W) {
    return widened(weight_product(widened(x), widened(W), rounding, where));
  };
  LSTMState state = run_cell(cell, product(input, weights.W_x), product(h, weights.W_h),
                             before.defined() ? widened(before) : before, bias_of(cell, weights), where);
  if (size_of(input.dtype()) != 2) return state;
  return {to_if_needed(state.h, input.dtype()), state.c.defined() ? to_if_needed(state.c, input.dtype()) : state.c};
}

}  // namespace

LSTMState stop_gradient(const LSTMState& state, Location where) {
  return {stop_gradient(Arg(state.h, where)), stop_gradient(Arg(state.c, where))};
}

LSTMState lstm_cell(const Arg& x, const LSTMState& state, const RecurrentWeights& weights) {
  return step("lstm_cell", RecurrentCell::lstm, x, state.h, state.c, weights);
}

LSTMState lstm_cell(const Arg& given_p, const Arg& given_q, const Arg& given_c) {
  const char* name = lstm_cell_op.name;
  const AutocastArg p(Precision::full, given_p), q(Precision::full, given_q), c(Precision::full, given_c);
  const Tensor &from_input = tensor_of(name, p), &from_state = tensor_of(name, q), &carried = tensor_of(name, c);
  Location where = given_p.location();
  OpScope caller(where, name);
  check_floating(name, carried, where);
  if (carried.rank() != 2) fail<ShapeError>(name, where, "c {} is not (B, H)", describe(carried));
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (carried.size(1) > most / 4) fail<ShapeError>(name, where, "c {} has too many columns", describe(carried));
  Shape arguments{carried.size(0), 4 * carried.size(1)};
  check_fits_input(name, "p", from_input, arguments, carried, where);
  check_fits_input(name, "q", from_state, arguments, carried, where);
  LSTMState state =
      run_cell(RecurrentCell::lstm, widened(from_input), widened(from_state), widened(carried), {}, where);
  if (size_of(carried.dtype()) != 2) return state;
  return {to_if_needed(state.h, carried.dtype()), to_if_needed(state.c, carried.dtype())};
}

LSTMState lstm_cell(const Arg& given_p, const LSTMState& state, const Arg& given_W_h) {
  const char* name = lstm_cell_op.name;
  Location where = given_p.location();
  OpScope caller(where, name);
  const AutocastArg p(Precision::full, given_p), W_h(Precision::full, given_W_h);
  const Tensor &from_input = tensor_of(name, p), &weights = tensor_of(name, W_h);
  const Tensor h = autocast_operand(Precision::full, state.h, where),
               c = autocast_operand(Precision::full, state.c, where);
  check_floating(name, from_input, where);
  if (from_input.rank() != 2 || from_input.size(1) % 4 != 0)
    fail<ShapeError>(name, where, "p {} is not (B, 4 H)", describe(from_input));
  std::int64_t batch = from_input.size(0), gates = from_input.size(1);
  std::int64_t width = weights.rank() == 2 ? weights.size(0) : 0;
  check_fits_input(name, "W_h", weights, {width, gates}, from_input, where);
  check_fits_input(name, "h", h, {batch, width}, from_input, where);
  check_fits_input(name, "c", c, {batch, gates / 4}, from_input, where);
  if (can_run_lstm_step({&from_input})) {
    const Tensor* operands[] = {&from_input, &h, &c, &weights};
    return lstm_step(operands, DType::f32, where);
  }
  LSTMState next = run_cell(RecurrentCell::lstm, widened(from_input), widened(matmul(widened(h), widened(weights))),
                            widened(c), {}, where);
  if (size_of(c.dtype()) != 2) return next;
  return {to_if_needed(next.h, c.dtype()), to_if_needed(next.c, c.dtype())};
}

Tensor gru_cell(const Arg& x, const Arg& h, const RecurrentWeights& weights) {
  const Tensor& before = tensor_of("gru_cell", h);
  return step("gru_cell", RecurrentCell::gru, x, before, before, weights).h;
}

Tensor rnn_cell(const Arg& x, const Arg& h, const RecurrentWeights& weights, RNNActivation activation) {
  RecurrentCell cell = activation == RNNActivation::relu ? RecurrentCell::rnn_relu : RecurrentCell::rnn_tanh;
  return step("rnn_cell", cell, x, tensor_of("rnn_cell", h), {}, weights).h;
}

OpList detail::recurrent_cell_ops() {
  static constexpr const OpInfo* ops[] = {&lstm_cell_op,          &gru_cell_op,          &rnn_cell_op,
                                          &lstm_cell_gradient_op, &gru_cell_gradient_op, &rnn_cell_gradient_op};
  return ops;
}

}  // namespace reel
