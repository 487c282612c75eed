#include <reel/nn/recurrent.h>

#include <reel/ops.h>

#include <new>
#include <type_traits>

#include "../../core/memory_error.h"
#include "../../core/op_error.h"
#include "../../dispatch/autocast.h"
#include "../../ops/recurrent/layers.h"
#include "packed.h"

namespace reel::nn {

using namespace detail;

namespace {

template <class Options>
RecurrentForm form_of(const char* name, const Options& options, Location where) {
  if (options.layers < 1) fail<ShapeError>(name, where, "there cannot be {} layers", options.layers);
  if (!(options.dropout >= 0 && options.dropout <= 1))
    fail<Error>(name, where, "the dropout {} does not lie in [0, 1]", options.dropout);
  return {options.bidirectional, options.variational, options.dropout, options.merge};
}

Sequences sequences_of(const char* name, const Tensor& x, const Tensor& lengths, std::int64_t input_size) {
  if (x.rank() != 3 || x.size(2) != input_size)
    fail<ShapeError>(name, {}, "the input {} is not (T, B, {})", describe(x), input_size);
  return padded_sequences(name, x, lengths, {});
}

Sequences sequences_of(const char* name, const Tensor& elements, const Packed& x, std::int64_t input_size) {
  if (elements.rank() != 2 || elements.size(1) != input_size)
    fail<ShapeError>(name, {}, "the elements {} are not (N, {})", describe(elements), input_size);
  check_packed(name, {elements, x.lengths}, {});
  Tensor input = autocast_operand(Precision::full, elements, {});
  DeviceGuard here(elements.device());
  return {input, input, pack_by_sequence(x.lengths), x.size()};
}

// Applies dropout between layers during training. Row r of each step belongs to one sequence.
Tensor dropped(const Tensor& rows, const Tensor& counts, const RecurrentForm& form) {
  if (!form.variational) return dropout(rows, {.probability = form.dropout});
  DeviceGuard here(rows.device());
  std::vector<std::int64_t> sequences;
  for (std::int64_t count : counts.to_vector<std::int64_t>())
    for (std::int64_t sequence = 0; sequence < count; ++sequence) sequences.push_back(sequence);
  Tensor masks = ones({select(counts, 0, 0).item<std::int64_t>(), rows.size(1)}, {.dtype = rows.dtype()});
  return rows * index_select(dropout(masks, {.probability = form.dropout}), 0, tensor(sequences));
}

template <class Cell>
constexpr const char* layer_name = "LSTM";
template <>
constexpr const char* layer_name<GRUCell> = "GRU";
template <>
constexpr const char* layer_name<RNNCell> = "RNN";

template <class Cell>
constexpr bool is_lstm = std::is_same_v<Cell, LSTMCell>;

RecurrentCell kind_of(const LSTMCell&) { return RecurrentCell::lstm; }
RecurrentCell kind_of(const GRUCell&) { return RecurrentCell::gru; }
RecurrentCell kind_of(const RNNCell& cell) {
  return cell.activation == RNNActivation::relu ? RecurrentCell::rnn_relu : RecurrentCell::rnn_tanh;
}

template <class Cell>
bool is_plain(const Cell& cell) {
  if constexpr (is_lstm<Cell>)
    return cell.is_plain();
  else
    return true;
}

// Calls the cell for one step, so that its hooks run.
template <class Cell>
LSTMState call_cell(const Cell& cell, const Tensor& x, const LSTMState& state) {
  if constexpr (is_lstm<Cell>)
    return cell(x, state);
  else
    return {cell(x, state.h), {}};
}

// Runs a cell with hooks, or one that is not plain, step by step; another one as one op.
template <class Cell>
NetOutput run_cell_over(const char* name, const Cell& cell, const Sequences& sequences, bool reverse,
                        const Tensor& rows, const LSTMState& before) {
  const Tensor& counts = sequences.packing.counts;
  if (cell.has_hooks()) {
    auto step = [&](const Tensor& x, const LSTMState& state) { return call_cell(cell, x, state); };
    return run_steps(rows, before, counts, reverse, step);
  }
  RecurrentWeights weights = autocast_operand(cell.weights(), {});
  if constexpr (is_lstm<Cell>)
    if (!cell.is_plain()) {
      check_fits_input(name, "W_h", weights.W_h, weights.W_h.shape(), sequences.input, {});
      check_fits_input(name, "W_x", weights.W_x, weights.W_x.shape(), sequences.input, {});
      auto step = [&](const Tensor& p, const LSTMState& state) { return cell.step(p, state); };
      return run_steps(cell.project(rows), before, counts, reverse, step);
    }
  check_weights(name, kind_of(cell), weights, rows.size(1), sequences.input, {});
  return run_packed_net(kind_of(cell), reverse, rows, before, counts, weights, {});
}

// Runs the layers as `lstm`, `gru` or `rnn` does, unless a cell has to be run step by step.
template <class Cell>
LSTMOutput run_module(const char* name, const ModuleList<Cell>& nets, const RecurrentForm& form, bool training,
                      const Sequences& sequences, const LSTMState& state) {
  auto between = [&](const Tensor& rows) {
    return training && form.dropout > 0 ? dropped(rows, sequences.packing.counts, form) : rows;
  };
  bool concatenates = !form.bidirectional || form.merge == MergeDirections::concat;
  std::vector<RecurrentWeights> weights;
  for (std::size_t net = 0; concatenates && net < nets.size() && is_plain(nets[net]) && !nets[net].has_hooks(); ++net)
    weights.push_back(nets[net].weights());
  if (weights.size() == nets.size())
    return run_nets(name, kind_of(nets[0]), sequences, state, weights, form.bidirectional, between, {});
  std::int64_t c_width = is_lstm<Cell> ? nets[0].hidden_size() : 0;
  RecurrentLayers layers{name, nets.size(), form.bidirectional, nets[0].W_h.size(0), c_width, {}};
  if (!concatenates)
    layers.merge = [&](const Tensor& a, const Tensor& b) { return merge_directions(a, b, form.merge); };
  auto run = [&](std::size_t net, bool reverse, const Tensor& rows, const LSTMState& before) {
    return run_cell_over(name, nets[net], sequences, reverse, rows, before);
  };
  return run_sequences(
      layers, sequences, state, [&] { return nets.parameters(); }, run, between);
}

}  // namespace

template <class Cell>
RecurrentLayer<Cell>::RecurrentLayer(std::int64_t input_size, std::int64_t hidden_size, Options options, Location where)
    : nets(*this, "nets"), form_(form_of(layer_name<Cell>, options, where)) {
  RecurrentModuleOptions<Cell, false> cell{.forget_bias = options.forget_bias,
                                           .projection = options.projection,
                                           .layer_norm = options.layer_norm,
                                           .activation = options.activation,
                                           .input_initialiser = options.input_initialiser,
                                           .recurrent_initialiser = options.recurrent_initialiser,
                                           .bias_initialiser = options.bias_initialiser,
                                           .dtype = options.dtype,
                                           .weight_dtype = options.weight_dtype,
                                           .generator = options.generator};
  std::int64_t directions = form_.bidirectional ? 2 : 1;
  std::int64_t parts = form_.merge == MergeDirections::concat ? directions : 1;
  for (std::int64_t net = 0; net < options.layers * directions; ++net) {
    std::int64_t size = net < directions ? input_size : parts * nets[0].W_h.size(0);
    nets.push_back(Cell(size, hidden_size, cell, where), where);
  }
}

template <class Cell>
template <class F>
typename RecurrentLayer<Cell>::Output RecurrentLayer<Cell>::call_with(const Tensor& x, const State& state,
                                                                      Location where, F f) const {
  if constexpr (is_lstm<Cell>)
    return call(layer_name<Cell>, {x, state.h, state.c}, where, [&](const Tensor& x, const Tensor& h, const Tensor& c) {
      return f(x, {h, c});
    });
  else
    return call(layer_name<Cell>, {x, state}, where, [&](const Tensor& x, const Tensor& h) {
      LSTMOutput all = f(x, {h, {}});
      return RecurrentOutput{std::move(all.output), std::move(all.h_n)};
    });
}

template <class Cell>
typename RecurrentLayer<Cell>::Output RecurrentLayer<Cell>::operator()(const Arg& x, const State& state,
                                                                       const Tensor& lengths) const try {
  const char* name = layer_name<Cell>;
  return call_with(tensor_of(name, x), state, x.location(), [&](const Tensor& x, const LSTMState& states) {
    Sequences sequences = sequences_of(name, x, lengths, nets[0].input_size());
    return padded_as(run_module(name, nets, form_, is_training(), sequences, states), x);
  });
} catch (const std::bad_alloc&) {
  fail_for_memory(layer_name<Cell>, x.location());
}

template <class Cell>
typename RecurrentLayer<Cell>::PackedOutput RecurrentLayer<Cell>::operator()(const Packed& x, const State& state,
                                                                             Location where) const try {
  const char* name = layer_name<Cell>;
  check_packed(name, x, where);
  Output result = call_with(x.elements, state, where, [&](const Tensor& elements, const LSTMState& states) {
    Sequences sequences = sequences_of(name, elements, x, nets[0].input_size());
    return run_module(name, nets, form_, is_training(), sequences, states);
  });
  if constexpr (is_lstm<Cell>)
    return {x.with(result.output), std::move(result.h_n), std::move(result.c_n)};
  else
    return {x.with(result.output), std::move(result.h_n)};
} catch (const std::bad_alloc&) {
  fail_for_memory(layer_name<Cell>, where);
}

template struct RecurrentLayer<LSTMCell>;
template struct RecurrentLayer<GRUCell>;
template struct RecurrentLayer<RNNCell>;

}  // namespace reel::nn
