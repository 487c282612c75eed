#include <reel/nn/gru.h>
#include <reel/nn/rnn.h>
#include <reel/ops/create.h>

#include "../../core/op_error.h"
#include "recurrent_weights.h"

namespace reel::nn {

using namespace detail;

namespace {

template <class Cell>
void check_step(const char* name, const Cell& cell, const Tensor& x, const Tensor& h) {
  std::int64_t batch = x.rank() == 2 ? x.size(0) : 0;
  if (!has_shape(x, {batch, cell.input_size()}) || !has_shape(h, {batch, cell.hidden_size()}))
    fail<ShapeError>(name, {}, "takes x (B, {}) with h (B, {}), not {} with {}", cell.input_size(), cell.hidden_size(),
                     to_string(x.shape()), shape_of(h));
}

}  // namespace

GRUCell::GRUCell(std::int64_t input_size, std::int64_t hidden_size, GRUCellOptions options, Location where)
    : W_x(*this, "W_x", {(check_cell_sizes("GRUCell", input_size, hidden_size, where), input_size), 3 * hidden_size},
          by_gate(options.input_initialiser, 3, hidden_size), draw_of(options), where),
      W_h(*this, "W_h", {hidden_size, 3 * hidden_size}, by_gate(options.recurrent_initialiser, 3, hidden_size),
          draw_of(options), where),
      bias(*this, "bias", {4 * hidden_size}, by_gate(options.bias_initialiser, 4, hidden_size), draw_of(options),
           where),
      weight_dtype(rounding_of("GRUCell", options, where)) {}

Tensor GRUCell::initial_state(std::int64_t batch, Location where) const {
  return zeros({batch, hidden_size()}, {.dtype = W_h.dtype(), .device = W_h.device()}, where);
}

Tensor GRUCell::operator()(const Arg& x, const Tensor& h) const {
  return call("GRUCell", {tensor_of("GRUCell", x), h}, x.location(), [&](const Tensor& x, const Tensor& h) {
    check_step("GRUCell", *this, x, h);
    return gru_cell(x, h, weights());
  });
}

RNNCell::RNNCell(std::int64_t input_size, std::int64_t hidden_size, RNNCellOptions options, Location where)
    : W_x(*this, "W_x", {(check_cell_sizes("RNNCell", input_size, hidden_size, where), input_size), hidden_size},
          by_gate(options.input_initialiser, 1, hidden_size), draw_of(options), where),
      W_h(*this, "W_h", {hidden_size, hidden_size}, by_gate(options.recurrent_initialiser, 1, hidden_size),
          draw_of(options), where),
      bias(*this, "bias", {hidden_size}, by_gate(options.bias_initialiser, 1, hidden_size), draw_of(options), where),
      activation(options.activation),
      weight_dtype(rounding_of("RNNCell", options, where)) {}

Tensor RNNCell::initial_state(std::int64_t batch, Location where) const {
  return zeros({batch, hidden_size()}, {.dtype = W_h.dtype(), .device = W_h.device()}, where);
}

Tensor RNNCell::operator()(const Arg& x, const Tensor& h) const {
  return call("RNNCell", {tensor_of("RNNCell", x), h}, x.location(), [&](const Tensor& x, const Tensor& h) {
    check_step("RNNCell", *this, x, h);
    return rnn_cell(x, h, weights(), activation);
  });
}

}  // namespace reel::nn
