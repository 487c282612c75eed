#include <reel/nn/lstm.h>

#include <cmath>

#include <reel/ops.h>

#include "../core/op_error.h"
#include "affine.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* cell_name = "LSTMCell";

bool has_shape(const Tensor& x, const Shape& shape) { return x.defined() && x.shape() == shape; }

std::string shape_of(const Tensor& x) { return x.defined() ? to_string(x.shape()) : "undefined"; }

// Of all parameters alike.
Initialiser first_values(std::int64_t input_size, std::int64_t hidden_size, Location where) {
  if (input_size <= 0 || hidden_size <= 0)
    fail<ShapeError>(cell_name, where, "sizes must be positive, not input {}, hidden {}", input_size, hidden_size);
  double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  return uniform(-bound, bound);
}

RandomOptions draw(const LSTMCellOptions& options) { return {.dtype = options.dtype, .generator = options.generator}; }

Tensor first_bias(std::int64_t input_size, std::int64_t hidden_size, const LSTMCellOptions& options, Location where) {
  CallerScope caller(where);
  Tensor by_gate = first_values(input_size, hidden_size, where)({4, hidden_size}, draw(options));
  Tensor forget_gate = to(unsqueeze(arange(4) == 1, 1), options.dtype);
  return reshape(by_gate + forget_gate * options.forget_bias, {4 * hidden_size});
}

}  // namespace

LSTMCell::LSTMCell(std::int64_t input_size, std::int64_t hidden_size, LSTMCellOptions options, Location where)
    : W_x(*this, "W_x", {input_size, 4 * hidden_size}, first_values(input_size, hidden_size, where), draw(options),
          where),
      W_h(*this, "W_h", {hidden_size, 4 * hidden_size}, first_values(input_size, hidden_size, where), draw(options),
          where),
      bias(*this, "bias", first_bias(input_size, hidden_size, options, where), where) {}

LSTMState LSTMCell::initial_state(std::int64_t batch, Location where) const {
  Shape shape{batch, hidden_size()};
  return {zeros(shape, {.dtype = W_h.dtype()}, where), zeros(shape, {.dtype = W_h.dtype()}, where)};
}

Tensor LSTMCell::project(const Arg& x) const {
  const Tensor& input = tensor_of(cell_name, x);
  CallerScope caller(x.location());
  if (input.rank() < 2 || input.size(-1) != input_size())
    fail<ShapeError>(cell_name, x.location(), "x {} is neither (B, {}) nor (T, B, {}), as W_x {} needs",
                     to_string(input.shape()), input_size(), input_size(), to_string(W_x.shape()));
  return affine(input, W_x, bias);
}

LSTMState LSTMCell::step(const Arg& projected, const LSTMState& state) const {
  const Tensor& from_input = tensor_of(cell_name, projected);
  Location where = projected.location();
  CallerScope caller(where);
  std::int64_t size = hidden_size();
  std::int64_t batch = from_input.rank() == 2 ? from_input.size(0) : 0;
  if (!has_shape(from_input, {batch, 4 * size}) || !has_shape(state.h, {batch, size}) ||
      !has_shape(state.c, {batch, size}))
    fail<ShapeError>(cell_name, where, "takes projected inputs (B, {}) with h and c (B, {}), not {} with {} and {}",
                     4 * size, size, to_string(from_input.shape()), shape_of(state.h), shape_of(state.c));
  return lstm_cell(from_input, matmul(state.h, W_h), state.c);
}

LSTMState LSTMCell::operator()(const Arg& x, const LSTMState& state) const {
  return call(cell_name, {tensor_of(cell_name, x), state.h, state.c}, x.location(),
              [&](const Tensor& x, const Tensor& h, const Tensor& c) {
                return step(project(x), {h, c});
              });
}

}  // namespace reel::nn
