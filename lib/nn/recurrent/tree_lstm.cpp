#include <reel/nn/tree_lstm.h>

#include <reel/ops.h>

#include "../../core/memory_error.h"
#include "../../core/op_error.h"
#include "../../ops/recurrent/tree_step.h"
#include "../affine.h"
#include "recurrent_weights.h"

namespace reel::nn {

using namespace detail;

const Tensor no_input;

namespace {

constexpr const char* sum_name = "ChildSumTreeLSTM";
constexpr const char* nary_name = "NaryTreeLSTM";

// Throws unless x and the children's states have the weights' dtype.
void check_dtypes(const char* name, const Tensor& weight, const Tensor& x, std::span<const LSTMState> children) {
  if (x.defined() && !goes_with(weight, x))
    fail<DTypeError>(name, {}, "the input {} is not of the weights' dtype {}; convert it with to(x, {})", describe(x),
                     name_of(weight.dtype()), name_of(weight.dtype()));
  for (std::size_t k = 0; k < children.size(); ++k)
    if (!goes_with(weight, children[k].h) || !goes_with(weight, children[k].c))
      fail<DTypeError>(name, {}, "h {} and c {} of child {} are not of the weights' dtype {}", describe(children[k].h),
                       describe(children[k].c), k, name_of(weight.dtype()));
}

// Throws unless x and the children's states have matching shapes.
template <class Cell>
void check_node(const char* name, const Cell& cell, const Tensor& x, std::span<const LSTMState> children) {
  if (!x.defined() && children.empty()) fail<Error>(name, {}, "a node has neither an input nor children");
  const Tensor& first = x.defined() ? x : children[0].h;
  std::int64_t batch = first.defined() && first.rank() == 2 ? first.size(0) : 0;
  Shape inputs{batch, cell.input_size()}, states{batch, cell.hidden_size()};
  if (x.defined() && !has_shape(x, inputs))
    fail<ShapeError>(name, {}, "the input {} is not (B, {})", describe(x), cell.input_size());
  for (std::size_t k = 0; k < children.size(); ++k)
    if (!has_shape(children[k].h, states) || !has_shape(children[k].c, states))
      fail<ShapeError>(name, {}, "h {} and c {} of child {} are not {}", shape_of(children[k].h),
                       shape_of(children[k].c), k, to_string(states));
  check_dtypes(name, cell.W_x, x, children);
}

// The gates' arguments from the input: i, o, u, f, (B, 4H), or (4H) without inputs.
Tensor from_input(const Tensor& x, const Tensor& W_x, const Tensor& bias) {
  return x.defined() ? affine(x, W_x, bias) : bias;
}

// The first three gates of p, and the last one.
Tensor state_gates(const Tensor& p) { return slice(p, -1, 0, p.size(-1) / 4 * 3); }
Tensor forget_gate(const Tensor& p) { return slice(p, -1, p.size(-1) / 4 * 3); }

std::vector<Tensor> memories_of(std::span<const LSTMState> children) {
  std::vector<Tensor> memories;
  for (const LSTMState& child : children) memories.push_back(child.c);
  return memories;
}

// The input of a node, which may be undefined.
const Tensor& input_of(const char* name, const Arg& x) {
  if (!x.is_tensor()) fail<DTypeError>(name, x.location(), "the input is a tensor, not a number");
  return *x.tensor();
}

// Runs f(x, children) as a call of the cell. The states are collected for hooks only if there are any.
template <class F>
LSTMState call_node(const Module& cell, const char* name, const Arg& x, std::span<const LSTMState> children, F f) {
  return with_memory_error(name, x.location(), [&]() -> LSTMState {
    const Tensor& input = input_of(name, x);
    ModuleCall running(cell, x.location());
    ModuleHooks* hooks = running.hooks();
    if (!hooks) return f(input, children);
    std::vector<Tensor> inputs{input};
    for (const LSTMState& child : children) inputs.insert(inputs.end(), {child.h, child.c});
    return running.run_seen(*hooks, inputs, [&] {
      std::vector<LSTMState> seen;
      for (std::size_t i = 1; i < inputs.size(); i += 2) seen.push_back({inputs[i], inputs[i + 1]});
      return f(inputs[0], std::span<const LSTMState>(seen));
    });
  });
}

}  // namespace

ChildSumTreeLSTM::ChildSumTreeLSTM(std::int64_t input_size, std::int64_t hidden_size, TreeLSTMOptions options,
                                   Location where)
    : W_x(*this, "W_x", {(check_cell_sizes(sum_name, input_size, hidden_size, where), input_size), 4 * hidden_size},
          by_gate(options.input_initialiser, 4, hidden_size), draw_of(options), where),
      W_h(*this, "W_h", {hidden_size, 3 * hidden_size}, by_gate(options.recurrent_initialiser, 3, hidden_size),
          draw_of(options), where),
      W_f(*this, "W_f", {hidden_size, hidden_size}, by_gate(options.recurrent_initialiser, 1, hidden_size),
          draw_of(options), where),
      bias(*this, "bias", {4 * hidden_size}, by_gate(options.bias_initialiser, 4, hidden_size, options.forget_bias, 3),
           draw_of(options), where) {}

LSTMState ChildSumTreeLSTM::operator()(const Arg& x, std::span<const LSTMState> children) const {
  return call_node(*this, sum_name, x, children, [&](const Tensor& x, std::span<const LSTMState> children) {
    check_node(sum_name, *this, x, children);
    Tensor p = from_input(x, W_x, bias);
    if (children.empty()) return tree_lstm_cell(state_gates(p));
    Tensor together = children[0].h;
    for (const LSTMState& child : children.subspan(1)) together = together + child.h;
    std::vector<Tensor> arguments{addmm(state_gates(p), together, W_h)};
    for (const LSTMState& child : children) arguments.push_back(addmm(forget_gate(p), child.h, W_f));
    return tree_lstm_cell(concat(arguments, 1), memories_of(children));
  });
}

NaryTreeLSTM::NaryTreeLSTM(std::int64_t input_size, std::int64_t hidden_size, std::int64_t children,
                           TreeLSTMOptions options, Location where)
    : W_x(*this, "W_x", {(check_cell_sizes(nary_name, input_size, hidden_size, where), input_size), 4 * hidden_size},
          by_gate(options.input_initialiser, 4, hidden_size), draw_of(options), where) {
  if (children < 1) fail<ShapeError>(nary_name, where, "nodes of at most {} children make no tree", children);
  CallerScope caller(where);
  std::vector<Tensor> rows;
  for (std::int64_t child = 0; child < children; ++child)
    rows.push_back(by_gate(options.recurrent_initialiser, static_cast<int>(3 + children), hidden_size)(
        {hidden_size, (3 + children) * hidden_size}, draw_of(options)));
  W_h = Parameter(*this, "W_h", concat(rows), where);
  bias = Parameter(*this, "bias", {4 * hidden_size},
                   by_gate(options.bias_initialiser, 4, hidden_size, options.forget_bias, 3), draw_of(options), where);
}

LSTMState NaryTreeLSTM::operator()(const Arg& x, std::span<const LSTMState> children) const {
  return call_node(*this, nary_name, x, children, [&](const Tensor& x, std::span<const LSTMState> children) {
    check_node(nary_name, *this, x, children);
    std::int64_t count = std::ssize(children), size = hidden_size();
    if (count > this->children())
      fail<ShapeError>(nary_name, {}, "a node has {} children, of {} at most", count, this->children());
    Tensor p = from_input(x, W_x, bias);
    if (children.empty()) return tree_lstm_cell(state_gates(p));
    if (count == this->children()) return tree_lstm_node(p, children, W_h, {});
    return tree_lstm_node(p, children, slice(slice(W_h, 0, 0, count * size), 1, 0, (3 + count) * size), {});
  });
}

}  // namespace reel::nn
