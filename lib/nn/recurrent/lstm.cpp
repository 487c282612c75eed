#include <reel/nn/lstm.h>

#include <reel/ops.h>

#include "../../core/op_error.h"
#include "../../ops/recurrent/lstm_step.h"
#include "../affine.h"
#include "recurrent_weights.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* cell_name = "LSTMCell";

// Returns the width of h. Throws unless the sizes are valid.
std::int64_t checked_output_size(std::int64_t input_size, std::int64_t hidden_size, std::int64_t projection,
                                 Location where) {
  check_cell_sizes(cell_name, input_size, hidden_size, where);
  if (projection < 0 || projection >= hidden_size)
    fail<ShapeError>(cell_name, where, "a projection to {} is not narrower than the {} that are projected", projection,
                     hidden_size);
  return projection > 0 ? projection : hidden_size;
}

}  // namespace

LSTMCell::LSTMCell(std::int64_t input_size, std::int64_t hidden_size, LSTMCellOptions options, Location where)
    : W_x(*this, "W_x", {(check_cell_sizes(cell_name, input_size, hidden_size, where), input_size), 4 * hidden_size},
          by_gate(options.input_initialiser, 4, hidden_size), draw_of(options), where),
      W_h(*this, "W_h", {checked_output_size(input_size, hidden_size, options.projection, where), 4 * hidden_size},
          by_gate(options.recurrent_initialiser, 4, hidden_size), draw_of(options), where),
      bias(*this, "bias", {4 * hidden_size}, by_gate(options.bias_initialiser, 4, hidden_size, options.forget_bias),
           draw_of(options), where),
      weight_dtype(rounding_of(cell_name, options, where)) {
  CallerScope caller(where);
  auto add = [&](Parameter& parameter, const char* name, const Shape& shape, const Initialiser& initialiser) {
    parameter = Parameter(*this, name, shape, initialiser, draw_of(options), where);
  };
  if (options.projection > 0) add(W_r, "W_r", {hidden_size, options.projection}, by_gate({}, 1, hidden_size));
  if (!options.layer_norm) return;
  add(scale_x, "scale_x", {4 * hidden_size}, constant(1));
  add(scale_h, "scale_h", {4 * hidden_size}, constant(1));
  add(scale_c, "scale_c", {hidden_size}, constant(1));
  add(shift_c, "shift_c", {hidden_size}, constant(0));
}

LSTMState LSTMCell::initial_state(std::int64_t batch, Location where) const {
  TensorOptions options{.dtype = W_h.dtype(), .device = W_h.device()};
  return {zeros({batch, output_size()}, options, where), zeros({batch, hidden_size()}, options, where)};
}

Tensor LSTMCell::project(const Arg& x) const {
  const Tensor& input = tensor_of(cell_name, x);
  CallerScope caller(x.location());
  if (input.rank() < 2 || input.size(-1) != input_size())
    fail<ShapeError>(cell_name, x.location(), "x {} is neither (B, {}) nor (T, B, {}), as W_x {} needs",
                     to_string(input.shape()), input_size(), input_size(), to_string(W_x.shape()));
  if (!weight_dtype && !scale_x.defined()) return affine(input, W_x, bias);
  Tensor p = product(input, W_x);
  return (scale_x.defined() ? layer_norm(p, scale_x.shape(), scale_x) : p) + bias;
}

LSTMState LSTMCell::step(const Arg& projected, const LSTMState& state) const {
  return call(cell_name, {tensor_of(cell_name, projected), state.h, state.c}, projected.location(),
              [&](const Tensor& p, const Tensor& h, const Tensor& c) {
                return advance(p, {h, c});
              });
}

bool LSTMCell::fits_step(const Tensor& input, std::int64_t width, const LSTMState& state) const {
  std::int64_t batch = input.defined() && input.rank() == 2 ? input.size(0) : 0;
  return !scale_x.defined() && !scale_h.defined() && has_shape(input, {batch, width}) &&
         has_shape(state.h, {batch, output_size()}) && has_shape(state.c, {batch, hidden_size()}) &&
         can_run_lstm_step({&input, &state.h, &state.c, &W_x, &W_h, &bias});
}

DType LSTMCell::rounding() const { return detail::rounding_of(cell_name, weight_dtype, W_h.dtype(), {}); }

Tensor LSTMCell::product(const Tensor& x, const Tensor& weight) const {
  return weight_product(x, weight, rounding(), {});
}

LSTMState LSTMCell::advance(const Tensor& p, const LSTMState& state) const {
  if (fits_step(p, 4 * hidden_size(), state)) {
    const Tensor* operands[] = {&p, &state.h, &state.c, &W_h};
    return with_projection(lstm_step(operands, rounding(), {}));
  }

  std::int64_t size = hidden_size(), width = output_size();
  std::int64_t batch = p.rank() == 2 ? p.size(0) : 0;
  if (!has_shape(p, {batch, 4 * size}) || !has_shape(state.h, {batch, width}) || !has_shape(state.c, {batch, size}))
    fail<ShapeError>(cell_name, {},
                     "takes projected inputs (B, {}) with h (B, {}) and c (B, {}), not {} with {} and {}", 4 * size,
                     width, size, to_string(p.shape()), shape_of(state.h), shape_of(state.c));
  Tensor q = product(state.h, W_h);
  if (scale_h.defined()) q = layer_norm(q, scale_h.shape(), scale_h);
  LSTMState next = lstm_cell(p, q, state.c);
  if (scale_c.defined()) {
    Tensor shown = tanh(layer_norm(next.c, scale_c.shape(), scale_c, shift_c));
    next.h = sigmoid(slice(p, 1, 3 * size) + slice(q, 1, 3 * size)) * shown;
  }
  return with_projection(std::move(next));
}

LSTMState LSTMCell::with_projection(LSTMState next) const {
  if (W_r.defined()) next.h = matmul(next.h, W_r);
  return next;
}

LSTMState LSTMCell::operator()(const Arg& x, const LSTMState& state) const {
  return call(cell_name, {tensor_of(cell_name, x), state.h, state.c}, x.location(),
              [&](const Tensor& x, const Tensor& h, const Tensor& c) {
                LSTMState state{h, c};
                if (!fits_step(x, input_size(), state)) return advance(project(x), state);
                const Tensor* operands[] = {&x, &h, &c, &W_h, &W_x, &bias};
                return with_projection(lstm_step(operands, rounding(), {}));
              });
}

}  // namespace reel::nn
