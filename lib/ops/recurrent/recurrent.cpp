#include "../../core/memory_error.h"
#include "layers.h"

#include <utility>
#include <vector>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/matmul.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>

#include "../../core/context.h"
#include "../../core/parameter_version.h"
#include "../../dispatch/autocast.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../composed_gradient.h"
#include "../if_needed.h"
#include "../linear_algebra/multiplications.h"
#include "../registry.h"

namespace reel {

using namespace detail;

// A net over packed steps: first step 0 of all examples that have one, then step 1 …, the examples in descending order
// of their lengths.
//   x (N, I), W_x, W_h, b, h_0 (B, H), counts (T) of examples at each step [, c_0] → y (N, H), h_n [, work [, c, c_n]]
//   dx = da W_xᵀ   dW_x = xᵀ da   dW_h = h_beforeᵀ da   db = Σ da, with da of all steps together

namespace {

enum Output : std::uint8_t { out_y, out_h, out_work, out_c_all, out_c };

View output_of(const Call& call, std::size_t i) {
  if (i < call.outputs.size()) return call.output(static_cast<int>(i));
  return {};
}

View input_of(const Call& call, std::size_t i) {
  if (i < call.inputs.size()) return call.input(static_cast<int>(i));
  return {};
}

// The output that stores x W_x: the cell reads it before it overwrites it.
Tensor room_for_arguments(const Call& call, RecurrentCell cell) {
  if (cell == RecurrentCell::lstm) return call.outputs[out_work];
  if (cell != RecurrentCell::gru) return call.outputs[out_y];
  const Body& x = call.input(in_x);
  return allocate(context(), {{x.dims[0], call.input(in_W_x).dims[1]}, x.dtype, x.device}, call.op.name, call.where);
}

void run_net(Call& call) {
  auto attributes = call.attributes<NetAttributes>();
  RecurrentCell cell = attributes.cell();
  const KernelTable& table = kernels(call.output().device);
  Tensor p = room_for_arguments(call, cell);
  count_products(call.input(in_W_h), call.input(in_x).dims[0]);
  DType rounding = attributes.rounding();
  WeightOperand W_h(call, call.input(in_W_h), rounding);
  multiply_by_weight(call, p.body(), call.input(in_x), call.input(in_W_x), rounding);
  table.recurrent->layer[attributes.cell_index]({.y = call.output(out_y),
                                                 .h = call.output(out_h),
                                                 .work = output_of(call, out_work),
                                                 .c_all = output_of(call, out_c_all),
                                                 .c = output_of(call, out_c),
                                                 .p = p.body(),
                                                 .W_h = W_h.body(),
                                                 .bias = call.input(in_bias),
                                                 .h_0 = call.input(in_h),
                                                 .c_0 = input_of(call, in_c),
                                                 .counts = call.input(in_counts),
                                                 .reverse = attributes.reverse != 0,
                                                 .weight_dtype = W_h.rounding()});
}

// dy, dh_n, y, W_h, h_0, counts [, work [, dc_n, c, c_0]] → da (or dp of gru), dh_0, h_before [, dq of gru or dc_0]
void run_net_gradient(Call& call) {
  auto attributes = call.attributes<NetAttributes>();
  bool lstm = attributes.cell() == RecurrentCell::lstm;
  count_products(call.input(3), call.input(0).dims[0]);
  WeightOperand W_h(call, call.input(3), attributes.rounding());
  kernels(call.output().device)
      .recurrent->layer_gradient[attributes.cell_index]({.dp = call.output(0),
                                                         .dq = lstm ? View{} : output_of(call, 3),
                                                         .dh_0 = call.output(1),
                                                         .dc_0 = lstm ? output_of(call, 3) : View{},
                                                         .h_before = call.output(2),
                                                         .dy = call.input(0),
                                                         .dh = call.input(1),
                                                         .dc = input_of(call, 7),
                                                         .y = call.input(2),
                                                         .work = input_of(call, 6),
                                                         .c_all = input_of(call, 8),
                                                         .W_h = W_h.body(),
                                                         .h_0 = call.input(4),
                                                         .c_0 = input_of(call, 9),
                                                         .counts = call.input(5),
                                                         .reverse = attributes.reverse != 0,
                                                         .weight_dtype = W_h.rounding()});
}

constexpr OpInfo net_gradient(const char* name) {
  return {.name = name, .forward = run_net_gradient, .internal = true};
}

constexpr OpInfo lstm_gradient_op = net_gradient("lstm_gradient");
constexpr OpInfo gru_gradient_op = net_gradient("gru_gradient");
constexpr OpInfo rnn_gradient_op = net_gradient("rnn_gradient");

const OpInfo& gradient_op_of(RecurrentCell cell) {
  switch (cell) {
    case RecurrentCell::lstm: return lstm_gradient_op;
    case RecurrentCell::gru: return gru_gradient_op;
    default: return rnn_gradient_op;
  }
}

void accumulate_fused(Gradient& g) {
  NetAttributes attributes = g.attributes<NetAttributes>();
  RecurrentCell cell = attributes.cell();
  bool lstm = cell == RecurrentCell::lstm, gru = cell == RecurrentCell::gru;
  const Tensor &y = g.saved_output(out_y), &W_h = g.saved_input(in_W_h), &h_0 = g.saved_input(in_h);
  Tensor dy = contiguous_if_needed(g.output(out_y)), dh = contiguous_if_needed(g.output(out_h)), dc;
  std::vector<const Tensor*> inputs{&dy, &dh, &y, &W_h, &h_0, &g.saved_input(in_counts)};
  if (lstm || gru) inputs.push_back(&g.saved_output(out_work));
  if (lstm) {
    dc = contiguous_if_needed(g.output(out_c));
    inputs.insert(inputs.end(), {&dc, &g.saved_output(out_c_all), &g.saved_input(in_c)});
  }
  Shape arguments{y.size(0), W_h.size(1)};
  std::vector<OutputSpec> specs{{arguments, y.dtype(), y.device()}, {h_0.body(), y.dtype()}, {y.body(), y.dtype()}};
  if (gru) specs.emplace_back(arguments, y.dtype(), y.device());
  if (lstm) specs.emplace_back(h_0.body(), y.dtype());
  Tensor outputs[4];
  Call call{gradient_op_of(cell), inputs, g.attribute_bytes(), specs, std::span(outputs, specs.size()), g.where()};
  invoke(call);

  const Tensor &dp = outputs[0], &dq = gru ? outputs[3] : dp;
  if (g.wants(in_x))
    g.accumulate(in_x, weight_product(dp, transpose(g.saved_input(in_W_x)), attributes.rounding(), g.where()));
  if (g.wants(in_W_x)) g.accumulate(in_W_x, matmul(transpose(g.saved_input(in_x)), dp));
  if (g.wants(in_W_h)) g.accumulate(in_W_h, matmul(transpose(outputs[2]), dq));
  if (g.wants(in_bias)) g.accumulate(in_bias, gru ? gru_bias_gradient(dp, dq) : sum(dp, {0}));
  g.accumulate(in_h, outputs[1]);
  if (lstm) g.accumulate(in_c, outputs[3]);
}

void accumulate_net_gradients(Gradient& g) {
  if (!g.recording()) return accumulate_fused(g);
  accumulate_composed(g, [&](std::span<const Tensor> in) -> std::vector<Tensor> {
    NetOutput net = composed_net(in, g.attributes<NetAttributes>(), g.where());
    return {std::move(net.y), std::move(net.state.h), {}, {}, std::move(net.state.c)};
  });
}

// Calls the op of a net; c is undefined unless it is an lstm.
NetOutput run_net_op(const Tensor& x, const LSTMState& before, const Tensor& counts, const RecurrentWeights& weights,
                     NetAttributes attributes, Location where);

// A sequence of each of several examples is one of several packed ones.
Joining joining_of_net(const Call& call) {
  if (call.input(in_h).dims[0] != 1 || call.input(in_x).device != cpu) return {};
  return {.by = Joining::By::rows,
          .shared = inputs({in_W_x, in_W_h, in_bias}),
          .own_rows = true,
          .dropped_outputs = 1 << out_work | 1 << out_c_all};
}

// Undefined for an undefined one.
Tensor inverse_permutation(const Tensor& places) {
  if (!places.defined()) return {};
  std::vector<std::int64_t> at = places.to_vector<std::int64_t>(), inverse(at.size());
  for (std::size_t i = 0; i < at.size(); ++i) inverse[static_cast<std::size_t>(at[i])] = static_cast<std::int64_t>(i);
  return tensor(inverse);
}

void run_joined_net(Call& joined, std::span<const std::int64_t> starts, std::span<const std::int64_t> /*results*/) {
  std::vector<std::int64_t> lengths(starts.size() - 1);
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = starts[i + 1] - starts[i];
  DeviceGuard here(cpu);
  Packing packing = pack_by_sequence(lengths);
  auto in_order = [](const Tensor& x, const Tensor& order) { return order.defined() ? index_select(x, 0, order) : x; };
  auto input = [&](std::size_t i) -> const Tensor& { return *joined.inputs[i]; };
  auto state = [&](std::size_t i) { return i < joined.inputs.size() ? in_order(input(i), packing.order) : Tensor(); };
  auto attributes = joined.attributes<NetAttributes>();
  NetOutput net = run_net_op(in_order(input(in_x), packing.places), {state(in_h), state(in_c)}, packing.counts,
                             {input(in_W_x), input(in_W_h), input(in_bias)}, attributes, joined.where);
  joined.outputs[out_y] = in_order(net.y, inverse_permutation(packing.places));
  joined.outputs[out_h] = in_order(net.state.h, packing.inverse_order);
  if (net.state.c.defined()) joined.outputs[out_c] = in_order(net.state.c, packing.inverse_order);
}

constexpr InputSet every_input = 0x7f;

constexpr OpInfo net_op(const char* name) {
  OpInfo op{.name = name,
            .forward = run_net,
            .gradient = accumulate_net_gradients,
            .saves_output_for = {every_input},
            .joining = joining_of_net,
            .run_joined = run_joined_net,
            .shares_weight = true};
  for (InputSet& set : op.saves_input_for) set = every_input;
  return op;
}

}  // namespace

constexpr OpInfo lstm_op = [] {
  OpInfo op = net_op("lstm");
  op.saves_output_for[out_work] = op.saves_output_for[out_c_all] = every_input;
  return op;
}();

constexpr OpInfo gru_op = [] {
  OpInfo op = net_op("gru");
  op.saves_output_for[out_work] = every_input;
  return op;
}();

constexpr OpInfo rnn_op = net_op("rnn");

namespace {

const OpInfo& op_of(RecurrentCell cell) {
  switch (cell) {
    case RecurrentCell::lstm: return lstm_op;
    case RecurrentCell::gru: return gru_op;
    default: return rnn_op;
  }
}

NetOutput run_net_op(const Tensor& x, const LSTMState& before, const Tensor& counts, const RecurrentWeights& weights,
                     NetAttributes attributes, Location where) {
  std::vector<const Tensor*> inputs{&x, &weights.W_x, &weights.W_h, &weights.bias, &before.h, &counts};
  OutputSpec state_spec(before.h.body(), x.dtype());
  Shape rows{x.size(0), before.h.size(1)}, work{rows[0], 4 * rows[1]};
  std::vector<OutputSpec> specs{{rows, x.dtype(), x.device()}, state_spec};
  RecurrentCell cell = attributes.cell();
  if (form_of(cell).work > 0) specs.emplace_back(work, x.dtype(), x.device());
  if (cell == RecurrentCell::lstm) {
    inputs.push_back(&before.c);
    specs.insert(specs.end(), {specs[0], state_spec});
  }
  Tensor outputs[5];
  Call call{op_of(cell), inputs, bytes_of(attributes), specs, std::span(outputs, specs.size()), where};
  invoke(call);
  return {std::move(outputs[out_y]), {std::move(outputs[out_h]), std::move(outputs[out_c])}};
}

}  // namespace

NetOutput detail::composed_net(std::span<const Tensor> in, NetAttributes attributes, Location where) {
  RecurrentCell cell = attributes.cell();
  bool lstm = cell == RecurrentCell::lstm;
  auto product = [&](const Tensor& x, const Tensor& W) { return weight_product(x, W, attributes.rounding(), where); };
  auto step = [&](const Tensor& p, const LSTMState& before) {
    return run_cell(cell, p, product(before.h, in[in_W_h]), lstm ? before.c : before.h, in[in_bias], where);
  };
  return run_steps(product(in[in_x], in[in_W_x]), {in[in_h], lstm ? in[in_c] : Tensor{}}, in[in_counts],
                   attributes.reverse != 0, step);
}

NetOutput detail::run_packed_net(RecurrentCell cell, bool reverse, const Tensor& x, const LSTMState& before,
                                 const Tensor& counts, const RecurrentWeights& weights, Location where) {
  Tensor input = contiguous_if_needed(widened(x)), h = contiguous_if_needed(widened(before.h)),
         bias = bias_of(cell, weights);
  Tensor W_x = widened(weights.W_x), W_h = contiguous_if_needed(widened(weights.W_h)), c;
  DType rounding = rounding_of(op_of(cell).name, weights.weight_dtype, W_h.dtype(), where);
  NetAttributes attributes{static_cast<std::int64_t>(cell), reverse, {static_cast<std::int64_t>(rounding)}};
  if (cell == RecurrentCell::lstm) c = contiguous_if_needed(widened(before.c));
  if (auto fused = run_fused_net({input, W_x, W_h, bias, h, counts, c}, weights, attributes, where))
    return std::move(*fused);
  return run_net_op(input, {h, c}, counts, {W_x, W_h, bias}, attributes, where);
}

Sequences detail::padded_sequences(const char* op, const Tensor& x, const Tensor& lengths, Location where) {
  std::int64_t steps = x.size(0), batch = x.size(1), rows;
  if (__builtin_mul_overflow(steps, batch, &rows)) fail<ShapeError>(op, where, "x {} has too many steps", describe(x));
  Tensor input = autocast_operand(Precision::full, x, where), elements = flatten(input, 0, 1);
  if (!lengths.defined()) return {input, elements, rectangle(steps, batch), batch};
  DeviceGuard here(x.device());
  return {input, elements, pack_by_step(checked_lengths(op, lengths, x, where), rows), batch};
}

LSTMState detail::completed_states(const RecurrentLayers& layers, const Sequences& sequences, LSTMState states) {
  const Tensor& x = sequences.input;
  check_floating(layers.op, x, layers.where);
  auto complete = [&](const char* what, Tensor& state, std::int64_t width) {
    Shape shape{static_cast<std::int64_t>(layers.nets), sequences.batch, width};
    if (!state.defined()) return static_cast<void>(state = zeros(shape, {.dtype = x.dtype(), .device = x.device()}));
    state = autocast_operand(Precision::full, state, layers.where);
    check_fits_input(layers.op, what, state, shape, x, layers.where);
  };
  complete("h", states.h, layers.h_width);
  if (layers.c_width > 0) complete("c", states.c, layers.c_width);
  return states;
}

LSTMOutput detail::output_without_steps(const RecurrentLayers& layers, const Sequences& sequences,
                                        const LSTMState& states, std::vector<Tensor> parameters) {
  const Tensor& elements = sequences.elements;
  parameters.push_back(elements);
  Tensor nothing = empty_sum(parameters, elements.dtype());
  std::int64_t width = (layers.bidirectional && !layers.merge ? 2 : 1) * layers.h_width;
  return {zeros({elements.size(0), width}, {.dtype = elements.dtype(), .device = elements.device()}) + nothing,
          states.h + nothing, layers.c_width > 0 ? states.c + nothing : Tensor{}};
}

std::int64_t detail::check_nets(const char* op, RecurrentCell cell, const Sequences& sequences,
                                std::span<const RecurrentWeights> weights, bool bidirectional, Location where) {
  const Tensor& x = sequences.input;
  check_floating(op, x, where);
  std::int64_t directions = bidirectional ? 2 : 1, size = 0;
  if (weights.empty() || std::ssize(weights) % directions != 0)
    fail<ShapeError>(op, where, "{} weights do not make layers of {}", weights.size(), directions);
  for (std::size_t net = 0; net < weights.size(); ++net) {
    bool first_layer = static_cast<std::int64_t>(net) < directions;
    std::int64_t width = first_layer ? x.size(-1) : directions * size;
    std::int64_t own = check_weights(op, cell, weights[net], width, x, where);
    if (net > 0 && own != size)
      fail<ShapeError>(op, where, "W_h {} of net {} and {} of net 0 have different hidden sizes",
                       to_string(weights[net].W_h.shape()), net, to_string(weights[0].W_h.shape()));
    size = own;
  }
  return size;
}

namespace {

LSTMOutput run_op(RecurrentCell cell, const Arg& given, const LSTMState& state,
                  std::span<const RecurrentWeights> weights, const Tensor& lengths, bool bidirectional) {
  return with_memory_error(op_of(cell).name, given.location(), [&]() -> LSTMOutput {
    const char* op = op_of(cell).name;
    Location where = given.location();
    OpScope caller(where, op);
    const Tensor& x = tensor_of(op, given);
    check_floating(op, x, where);
    if (x.rank() != 3) fail<ShapeError>(op, where, "the input {} is not (T, B, I)", describe(x));
    Sequences sequences = padded_sequences(op, x, lengths, where);
    auto between = [](Tensor rows) { return rows; };
    return padded_as(run_nets(op, cell, sequences, state, weights, bidirectional, between, where), x);
  });
}

}  // namespace

LSTMOutput lstm(const Arg& x, const LSTMState& state, std::span<const RecurrentWeights> weights,
                const RecurrentOptions& options) {
  return run_op(RecurrentCell::lstm, x, state, weights, options.lengths, options.bidirectional);
}

RecurrentOutput gru(const Arg& x, const Tensor& h, std::span<const RecurrentWeights> weights,
                    const RecurrentOptions& options) {
  LSTMOutput output = run_op(RecurrentCell::gru, x, {h, {}}, weights, options.lengths, options.bidirectional);
  return {std::move(output.output), std::move(output.h_n)};
}

RecurrentOutput rnn(const Arg& x, const Tensor& h, std::span<const RecurrentWeights> weights,
                    const RNNOptions& options) {
  RecurrentCell cell = options.activation == RNNActivation::relu ? RecurrentCell::rnn_relu : RecurrentCell::rnn_tanh;
  LSTMOutput output = run_op(cell, x, {h, {}}, weights, options.lengths, options.bidirectional);
  return {std::move(output.output), std::move(output.h_n)};
}

OpList detail::recurrent_ops() {
  static constexpr const OpInfo* ops[] = {&lstm_op,          &gru_op,          &rnn_op,
                                          &lstm_gradient_op, &gru_gradient_op, &rnn_gradient_op};
  return ops;
}

}  // namespace reel
