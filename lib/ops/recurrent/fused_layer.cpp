#include <utility>
#include <vector>

#include <reel/ops/shape.h>

#include "../../core/context.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../composed_gradient.h"
#include "../if_needed.h"
#include "../linear_algebra/multiplications.h"
#include "../registry.h"
#include "packed_weights.h"
#include "recurrent.h"

namespace reel {

using namespace detail;

// The ops of recurrent.cpp for fused layers, which a device computes by one call. `packed` holds W_x, W_h and b in the
// device's layout, `kept` opaque data for the gradient:
//   x (N, I), W_x, W_h, b, h_0 (B, H), counts (T) [, c_0], packed → y (N, H), h_n, kept [, c_n]

namespace {

enum FusedOutput : std::uint8_t { fused_y, fused_h, fused_kept, fused_c };

FusedLayer fused_form(const Tensor& x, const Tensor& h, const Tensor& counts, NetAttributes attributes,
                      bool differentiable) {
  return {.cell = attributes.cell(),
          .reverse = attributes.reverse != 0,
          .differentiable = differentiable,
          .dtype = x.dtype(),
          .width = x.size(1),
          .size = h.size(1),
          .batch = h.size(0),
          .counts = counts.body()};
}

struct FusedAttributes {
  NetAttributes net;
  std::int64_t differentiable;
};

void run_fused(Call& call) {
  const auto& attributes = call.attributes<FusedAttributes>();
  bool lstm = attributes.net.cell() == RecurrentCell::lstm;
  auto in = [&](int i) -> const Tensor& { return *call.inputs[static_cast<std::size_t>(i)]; };
  count_products(in(in_W_x).body(), in(in_x).size(0));
  count_products(in(in_W_h).body(), in(in_x).size(0));
  kernels(call.output().device)
      .recurrent->fused_layer(
          {.form = fused_form(in(in_x), in(in_h), in(in_counts), attributes.net, attributes.differentiable != 0),
           .y = call.output(fused_y),
           .h = call.output(fused_h),
           .c = lstm ? View(call.output(fused_c)) : View{},
           .kept = call.output(fused_kept),
           .x = call.input(in_x),
           .packed = call.input(lstm ? 7 : 6),
           .h_0 = call.input(in_h),
           .c_0 = lstm ? View(call.input(in_c)) : View{}});
}

struct FusedGradientAttributes {
  NetAttributes net;
  std::int64_t overwrites_kept;
};

// dy, dh_n, x, y, W_x, W_h, h_0, counts, kept, packed [, dc_n, c_0] → dx, dW_x, dW_h, db, dh_0 [, dc_0]
void run_fused_gradient(Call& call) {
  const auto& attributes = call.attributes<FusedGradientAttributes>();
  bool lstm = attributes.net.cell() == RecurrentCell::lstm;
  auto in = [&](int i) -> const Tensor& { return *call.inputs[static_cast<std::size_t>(i)]; };
  std::int64_t products = call.output(1).numel > 0 ? 2 : 1;
  count_products(in(4).body(), products * in(2).size(0));
  count_products(in(5).body(), products * in(2).size(0));
  kernels(call.output().device)
      .recurrent->fused_layer_gradient({.form = fused_form(in(2), in(6), in(7), attributes.net, true),
                                        .dx = call.output(0),
                                        .dW_x = call.output(1),
                                        .dW_h = call.output(2),
                                        .dbias = call.output(3),
                                        .dh_0 = call.output(4),
                                        .dc_0 = lstm ? View(call.output(5)) : View{},
                                        .dy = call.input(0),
                                        .dh = call.input(1),
                                        .dc = lstm ? View(call.input(10)) : View{},
                                        .x = call.input(2),
                                        .y = call.input(3),
                                        .h_0 = call.input(6),
                                        .c_0 = lstm ? View(call.input(11)) : View{},
                                        .kept = call.input(8),
                                        .packed = call.input(9),
                                        .overwrites_kept = attributes.overwrites_kept != 0});
}

constexpr OpInfo fused_layer_gradient_op(const char* name) {
  return {.name = name, .forward = run_fused_gradient, .internal = true, .needs_device = true};
}

constexpr OpInfo fused_lstm_gradient_op = fused_layer_gradient_op("lstm_gradient");
constexpr OpInfo fused_gru_gradient_op = fused_layer_gradient_op("gru_gradient");
constexpr OpInfo fused_rnn_gradient_op = fused_layer_gradient_op("rnn_gradient");

const OpInfo& fused_gradient_op_of(RecurrentCell cell) {
  switch (cell) {
    case RecurrentCell::lstm: return fused_lstm_gradient_op;
    case RecurrentCell::gru: return fused_gru_gradient_op;
    default: return fused_rnn_gradient_op;
  }
}

void accumulate_at_once(Gradient& g) {
  NetAttributes net = g.attributes<FusedAttributes>().net;
  bool lstm = net.cell() == RecurrentCell::lstm;
  const Tensor &kept = g.saved_output(fused_kept), &packed = g.saved_input(lstm ? 7 : 6);
  FusedGradientAttributes attributes{net, g.is_last_use_of(kept)};
  const Tensor &x = g.saved_input(in_x), &W_x = g.saved_input(in_W_x), &W_h = g.saved_input(in_W_h);
  const Tensor &bias = g.saved_input(in_bias), &h_0 = g.saved_input(in_h);
  Tensor dy = contiguous_if_needed(g.output(fused_y)), dh = contiguous_if_needed(g.output(fused_h)), dc;
  const Tensor &y = g.saved_output(fused_y), &counts = g.saved_input(in_counts);
  std::vector<const Tensor*> inputs{&dy, &dh, &x, &y, &W_x, &W_h, &h_0, &counts, &kept, &packed};
  if (lstm) {
    dc = contiguous_if_needed(g.output(fused_c));
    inputs.insert(inputs.end(), {&dc, &g.saved_input(in_c)});
  }
  bool wants_weights = g.wants(in_W_x) || g.wants(in_W_h) || g.wants(in_bias);
  // An OutputSpec does not own its sizes.
  auto sizes_of = [&](const Tensor& like) { return wants_weights ? like.shape() : Shape{0}; };
  const Shape sizes[] = {sizes_of(W_x), sizes_of(W_h), sizes_of(bias)};
  std::vector<OutputSpec> specs{{x.body(), x.dtype()}};
  for (const Shape& size : sizes) specs.emplace_back(size, x.dtype(), x.device());
  specs.emplace_back(h_0.body(), x.dtype());
  if (lstm) specs.emplace_back(h_0.body(), x.dtype());
  Tensor outputs[6];
  Call call{fused_gradient_op_of(net.cell()), inputs,   bytes_of(attributes), specs,
            std::span(outputs, specs.size()), g.where()};
  invoke(call);
  auto give = [&](NetInput input, Tensor& gradient) {
    if (g.wants(input)) g.accumulate(input, std::move(gradient));
  };
  give(in_x, outputs[0]);
  give(in_W_x, outputs[1]);
  give(in_W_h, outputs[2]);
  give(in_bias, outputs[3]);
  give(in_h, outputs[4]);
  if (lstm) give(in_c, outputs[5]);
}

void accumulate_fused_gradients(Gradient& g) {
  if (!g.recording()) return accumulate_at_once(g);
  accumulate_composed(g, [&](std::span<const Tensor> in) -> std::vector<Tensor> {
    NetOutput net = composed_net(in, g.attributes<FusedAttributes>().net, g.where());
    return {std::move(net.y), std::move(net.state.h), {}, std::move(net.state.c)};
  });
}

constexpr OpInfo fused_layer_op(const char* name) {
  constexpr InputSet every_input = 0xff;
  OpInfo op{.name = name,
            .forward = run_fused,
            .gradient = accumulate_fused_gradients,
            .hidden_outputs = 1 << fused_kept,
            .internal = true,
            .needs_device = true};
  op.saves_output_for[fused_y] = op.saves_output_for[fused_kept] = every_input;
  for (InputSet& set : op.saves_input_for) set = every_input;
  return op;
}

constexpr OpInfo fused_lstm_op = fused_layer_op("lstm");
constexpr OpInfo fused_gru_op = fused_layer_op("gru");
constexpr OpInfo fused_rnn_op = fused_layer_op("rnn");

const OpInfo& fused_op_of(RecurrentCell cell) {
  switch (cell) {
    case RecurrentCell::lstm: return fused_lstm_op;
    case RecurrentCell::gru: return fused_gru_op;
    default: return fused_rnn_op;
  }
}

}  // namespace

std::optional<NetOutput> detail::run_fused_net(const std::array<Tensor, 7>& in, const RecurrentWeights& given,
                                               NetAttributes net, Location where) {
  const Tensor &x = in[in_x], &h = in[in_h];
  const RecurrentKernels& recurrent = *kernels(x.device()).recurrent;
  if (!recurrent.fused_layer_sizes) return {};
  FusedAttributes attributes{net, context().has(Context::recording)};
  FusedLayerSizes sizes;
  if (!recurrent.fused_layer_sizes(fused_form(x, h, in[in_counts], net, attributes.differentiable != 0), sizes))
    return {};
  bool lstm = net.cell() == RecurrentCell::lstm;
  Tensor packed = packed_weights(net, sizes, {in[in_W_x], in[in_W_h], in[in_bias]}, given, where);
  std::vector<const Tensor*> inputs;
  for (std::size_t i = 0; i < (lstm ? 7 : 6); ++i) inputs.push_back(&in[i]);
  inputs.push_back(&packed);
  Shape rows{x.size(0), h.size(1)}, kept{sizes.kept};
  OutputSpec state(h.body(), x.dtype());
  std::vector<OutputSpec> specs{{rows, x.dtype(), x.device()}, state, {kept, DType::u8, x.device()}};
  if (lstm) specs.push_back(state);
  Tensor outputs[4];
  Call call{fused_op_of(net.cell()), inputs, bytes_of(attributes), specs, std::span(outputs, specs.size()), where};
  invoke(call);
  return NetOutput{std::move(outputs[fused_y]), {std::move(outputs[fused_h]), std::move(outputs[fused_c])}};
}

OpList detail::fused_layer_ops() {
  static constexpr const OpInfo* ops[] = {&pack_weights_op,      &fused_lstm_op,          &fused_gru_op,
                                          &fused_rnn_op,         &fused_lstm_gradient_op, &fused_gru_gradient_op,
                                          &fused_rnn_gradient_op};
  return ops;
}

}  // namespace reel
