#include <algorithm>
#include <utility>
#include <vector>

#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include "../../core/memory_error.h"
#include "../../dispatch/autocast.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../registry.h"
#include "recurrent.h"

namespace reel {

using namespace detail;

// tree_lstm_cell: a, c_1 … c_N → h', the gates i o u f_1 … f_N, c'.
//   t = tanh(c')   e = dc' + dh' o (1 − t²)
//   da_i = e u i (1 − i)   da_o = dh' t o (1 − o)   da_u = e i (1 − u²)   da_k = e c_k f_k (1 − f_k)   dc_k = e f_k
//   second-order gradients of the gates are added before their slopes are applied

namespace {

// dh', dc', gates, c', c_1 … c_N → da, dc_1 … dc_N
constexpr OpInfo tree_lstm_cell_gradient_op{
    .name = "tree_lstm_cell_gradient",
    .forward =
        [](Call& call) {
          TreeCellBackward node{.da = call.output(0),
                                .d_before = {},
                                .dh = call.input(0),
                                .dc = call.input(1),
                                .work = call.input(2),
                                .after = call.input(3),
                                .before = {},
                                .children = static_cast<int>(call.outputs.size()) - 1};
          for (int k = 0; k < node.children; ++k) {
            node.d_before[k] = call.output(1 + k);
            node.before[k] = call.input(4 + k);
          }
          recurrent_kernels(call).tree_cell_gradient(node);
        },
    .internal = true,
};

NodeGradients fused_gradients(Gradient& g, std::span<const Tensor* const> memories) {
  enum { out_h, out_gates, out_c };
  std::size_t children = memories.size();
  Tensor dh = contiguous_if_needed(g.output(out_h)), dc = contiguous_if_needed(g.output(out_c));
  const Tensor &gates = g.saved_output(out_gates), &after = g.saved_output(out_c);
  const Tensor* inputs[4 + most_children] = {&dh, &dc, &gates, &after};
  std::copy(memories.begin(), memories.end(), inputs + 4);
  OutputSpec memory(dh.body(), dh.dtype());
  const OutputSpec specs[] = {{gates.body(), gates.dtype()}, memory, memory, memory, memory, memory, memory};
  static_assert(std::size(specs) == 1 + most_children);
  Tensor outputs[1 + most_children];
  Call call{tree_lstm_cell_gradient_op,     std::span(inputs, 4 + children),  {},
            std::span(specs, 1 + children), std::span(outputs, 1 + children), g.where()};
  invoke(call);
  NodeGradients made{std::move(outputs[0]), {}};
  for (std::size_t k = 0; k < children; ++k) made.dc[k] = std::move(outputs[1 + k]);
  return made;
}

NodeGradients composed_gradients(Gradient& g, std::span<const Tensor* const> memories) {
  enum { out_h, out_gates, out_c };
  const Tensor& dh = g.output(out_h);
  std::vector<Tensor> gates = split(g.saved_output(out_gates), dh.size(1), 1);
  const Tensor &i = gates[0], &o = gates[1], &u = gates[2];
  Tensor shown = tanh(g.saved_output(out_c));
  Tensor e = g.output(out_c) + dh * o * (1 - square(shown));
  std::vector<Tensor> by_gates{e * u, dh * shown, e * i}, slopes{i * (1 - i), o * (1 - o), 1 - square(u)};
  NodeGradients made;
  for (std::size_t k = 0; k < memories.size(); ++k) {
    const Tensor& f = gates[3 + k];
    by_gates.push_back(e * *memories[k]);
    slopes.push_back(f * (1 - f));
    made.dc[k] = e * f;
  }
  Tensor by_all = concat(by_gates, 1);
  if (g.has_output(out_gates)) by_all = by_all + g.output(out_gates);
  made.da = by_all * concat(slopes, 1);
  return made;
}

}  // namespace

NodeGradients detail::node_gradients(Gradient& g, std::span<const Tensor* const> memories) {
  enum { out_h, out_gates, out_c };
  bool composed = g.recording() || g.has_output(out_gates);
  return composed ? composed_gradients(g, memories) : fused_gradients(g, memories);
}

constexpr OpInfo tree_lstm_cell_op = [] {
  OpInfo op{.name = "tree_lstm_cell",
            .forward =
                [](Call& call) {
                  TreeCellForward node{.h = call.output(0),
                                       .work = call.output(1),
                                       .c = call.output(2),
                                       .a = call.input(0),
                                       .p = {},
                                       .before = {},
                                       .children = static_cast<int>(call.inputs.size()) - 1};
                  for (int k = 0; k < node.children; ++k) node.before[k] = call.input(1 + k);
                  recurrent_kernels(call).tree_cell(node);
                },
            .gradient =
                [](Gradient& g) {
                  const Tensor* memories[most_children];
                  std::size_t children = g.input_count() - 1;
                  for (std::size_t k = 0; k < children; ++k) memories[k] = &g.saved_input(static_cast<int>(1 + k));
                  NodeGradients made = node_gradients(g, std::span(memories, children));
                  if (g.wants(0)) g.accumulate(0, std::move(made.da));
                  for (std::size_t k = 0; k < children; ++k)
                    if (g.wants(1 + k)) g.accumulate(1 + k, std::move(made.dc[k]));
                }};
  constexpr InputSet every_input = 0x7f;
  static_assert(every_input == (1 << (1 + most_children)) - 1);
  for (int k = 1; k <= most_children; ++k) op.saves_input_for[k] = every_input;
  op.saves_output_for[1] = op.saves_output_for[2] = every_input;
  op.joining = [](const Call&) -> Joining { return {.by = Joining::By::rows, .dropped_outputs = 1 << 1}; };
  return op;
}();

namespace {

LSTMState fused(const Tensor& a, std::span<const Tensor> c, std::int64_t size, Location where) {
  Tensor arguments = contiguous_if_needed(widened(a)), memories[most_children];
  const Tensor* inputs[1 + most_children] = {&arguments};
  for (std::size_t k = 0; k < c.size(); ++k) {
    memories[k] = contiguous_if_needed(widened(c[k]));
    inputs[1 + k] = &memories[k];
  }
  Shape shape{a.size(0), size};
  OutputSpec state(shape, arguments.dtype(), arguments.device());
  const OutputSpec specs[] = {state, {arguments.body(), arguments.dtype()}, state};
  Tensor outputs[3];
  Call call{tree_lstm_cell_op, std::span(inputs, 1 + c.size()), {}, specs, outputs, where};
  invoke(call);
  return {std::move(outputs[0]), std::move(outputs[2])};
}

// A node with more children than the kernel supports.
LSTMState composed(const Tensor& a, std::span<const Tensor> c, std::int64_t size) {
  std::vector<Tensor> gates = split(widened(a), size, 1);
  Tensor sum = sigmoid(gates[0]) * tanh(gates[2]);
  for (std::size_t k = 0; k < c.size(); ++k) sum = sum + sigmoid(gates[3 + k]) * widened(c[k]);
  return {sigmoid(gates[1]) * tanh(sum), sum};
}

}  // namespace

LSTMState tree_lstm_cell(const Arg& given_a, std::span<const Tensor> c) {
  return with_memory_error(tree_lstm_cell_op.name, given_a.location(), [&]() -> LSTMState {
    const char* name = tree_lstm_cell_op.name;
    Location where = given_a.location();
    OpScope caller(where, name);
    const AutocastArg a(Precision::full, given_a);
    const Tensor& arguments = tensor_of(name, a);
    std::vector<Tensor> memories;
    if (is_autocasting()) {
      for (const Tensor& memory : c) memories.push_back(autocast_operand(Precision::full, memory, where));
      c = memories;
    }
    check_floating(name, arguments, where);
    std::int64_t blocks = 3 + std::ssize(c);
    if (arguments.rank() != 2 || arguments.size(1) == 0 || arguments.size(1) % blocks != 0)
      fail<ShapeError>(name, where, "a {} is not (B, {} H), which goes with {} children, with an H of at least 1",
                       describe(arguments), blocks, c.size());
    std::int64_t size = arguments.size(1) / blocks;
    for (std::size_t k = 0; k < c.size(); ++k)
      check_fits_input(name, "c", c[k], {arguments.size(0), size}, arguments, where);
    LSTMState state = c.size() <= most_children ? fused(arguments, c, size, where) : composed(arguments, c, size);
    if (size_of(arguments.dtype()) != 2) return state;
    return {to_if_needed(state.h, arguments.dtype()), to_if_needed(state.c, arguments.dtype())};
  });
}

OpList detail::tree_cell_ops() {
  static constexpr const OpInfo* ops[] = {&tree_lstm_cell_op, &tree_lstm_cell_gradient_op};
  return ops;
}

}  // namespace reel
