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

// Adds the cells of all layers, whose outputs have width `width`.
template <class Cell, class Options>
void add_nets(ModuleList<Cell>& nets, std::int64_t input_size, std::int64_t hidden_size, std::int64_t width,
              std::int64_t layers, const RecurrentForm& form, const Options& options, Location where) {
  std::int64_t directions = form.bidirectional ? 2 : 1;
  std::int64_t parts = form.merge == MergeDirections::concat ? directions : 1;
  for (std::int64_t net = 0; net < layers * directions; ++net)
    nets.push_back(Cell(net < directions ? input_size : parts * width, hidden_size, options, where), where);
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

constexpr const char* lstm_name = "LSTM";

RecurrentCell kind_of(const LSTMCell&) { return RecurrentCell::lstm; }
RecurrentCell kind_of(const GRUCell&) { return RecurrentCell::gru; }
RecurrentCell kind_of(const RNNCell& cell) {
  return cell.activation == RNNActivation::relu ? RecurrentCell::rnn_relu : RecurrentCell::rnn_tanh;
}

// The width of h; that of c, 0 if there is none.
std::int64_t h_width_of(const LSTMCell& cell) { return cell.output_size(); }
std::int64_t c_width_of(const LSTMCell& cell) { return cell.hidden_size(); }
template <class Cell>
std::int64_t h_width_of(const Cell& cell) {
  return cell.hidden_size();
}
template <class Cell>
std::int64_t c_width_of(const Cell&) {
  return 0;
}

bool is_plain(const LSTMCell& cell) { return cell.is_plain(); }
template <class Cell>
bool is_plain(const Cell&) {
  return true;
}

// Calls the cell for one step, so that its hooks run.
LSTMState call_cell(const LSTMCell& cell, const Tensor& x, const LSTMState& state) { return cell(x, state); }
template <class Cell>
LSTMState call_cell(const Cell& cell, const Tensor& x, const LSTMState& state) {
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
  if constexpr (std::is_same_v<Cell, LSTMCell>)
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
  RecurrentLayers layers{name, nets.size(), form.bidirectional, h_width_of(nets[0]), c_width_of(nets[0]), {}};
  if (!concatenates)
    layers.merge = [&](const Tensor& a, const Tensor& b) { return merge_directions(a, b, form.merge); };
  auto run = [&](std::size_t net, bool reverse, const Tensor& rows, const LSTMState& before) {
    return run_cell_over(name, nets[net], sequences, reverse, rows, before);
  };
  return run_sequences(
      layers, sequences, state, [&] { return nets.parameters(); }, run, between);
}

RecurrentOutput without_memory(LSTMOutput output) { return {std::move(output.output), std::move(output.h_n)}; }

}  // namespace

LSTM::LSTM(std::int64_t input_size, std::int64_t hidden_size, LSTMOptions options, Location where)
    : nets(*this, "nets"), form_(form_of(lstm_name, options, where)) {
  LSTMCellOptions cell{.forget_bias = options.forget_bias,
                       .projection = options.projection,
                       .layer_norm = options.layer_norm,
                       .input_initialiser = options.input_initialiser,
                       .recurrent_initialiser = options.recurrent_initialiser,
                       .bias_initialiser = options.bias_initialiser,
                       .dtype = options.dtype,
                       .weight_dtype = options.weight_dtype,
                       .generator = options.generator};
  std::int64_t width = options.projection > 0 ? options.projection : hidden_size;
  add_nets(nets, input_size, hidden_size, width, options.layers, form_, cell, where);
}

LSTMOutput LSTM::operator()(const Arg& x, const LSTMState& state, const Tensor& lengths) const try {
  return call(lstm_name, {tensor_of(lstm_name, x), state.h, state.c}, x.location(),
              [&](const Tensor& x, const Tensor& h, const Tensor& c) {
                Sequences sequences = sequences_of(lstm_name, x, lengths, nets[0].input_size());
                return padded_as(run_module(lstm_name, nets, form_, is_training(), sequences, {h, c}), x);
              });
} catch (const std::bad_alloc&) {
  fail_for_memory(lstm_name, x.location());
}

PackedLSTMOutput LSTM::operator()(const Packed& x, const LSTMState& state, Location where) const try {
  check_packed(lstm_name, x, where);
  LSTMOutput result = call(lstm_name, {x.elements, state.h, state.c}, where,
                           [&](const Tensor& elements, const Tensor& h, const Tensor& c) {
                             Sequences sequences = sequences_of(lstm_name, elements, x, nets[0].input_size());
                             return run_module(lstm_name, nets, form_, is_training(), sequences, {h, c});
                           });
  return {x.with(result.output), std::move(result.h_n), std::move(result.c_n)};
} catch (const std::bad_alloc&) {
  fail_for_memory(lstm_name, where);
}

GRU::GRU(std::int64_t input_size, std::int64_t hidden_size, GRUOptions options, Location where)
    : nets(*this, "nets"), form_(form_of("GRU", options, where)) {
  GRUCellOptions cell{.input_initialiser = options.input_initialiser,
                      .recurrent_initialiser = options.recurrent_initialiser,
                      .bias_initialiser = options.bias_initialiser,
                      .dtype = options.dtype,
                      .weight_dtype = options.weight_dtype,
                      .generator = options.generator};
  add_nets(nets, input_size, hidden_size, hidden_size, options.layers, form_, cell, where);
}

RNN::RNN(std::int64_t input_size, std::int64_t hidden_size, RNNLayerOptions options, Location where)
    : nets(*this, "nets"), form_(form_of("RNN", options, where)) {
  RNNCellOptions cell{.activation = options.activation,
                      .input_initialiser = options.input_initialiser,
                      .recurrent_initialiser = options.recurrent_initialiser,
                      .bias_initialiser = options.bias_initialiser,
                      .dtype = options.dtype,
                      .weight_dtype = options.weight_dtype,
                      .generator = options.generator};
  add_nets(nets, input_size, hidden_size, hidden_size, options.layers, form_, cell, where);
}

RecurrentOutput GRU::operator()(const Arg& x, const Tensor& h, const Tensor& lengths) const try {
  return call("GRU", {tensor_of("GRU", x), h}, x.location(), [&](const Tensor& x, const Tensor& h) {
    Sequences sequences = sequences_of("GRU", x, lengths, nets[0].input_size());
    return padded_as(without_memory(run_module("GRU", nets, form_, is_training(), sequences, {h, {}})), x);
  });
} catch (const std::bad_alloc&) {
  fail_for_memory("GRU", x.location());
}

PackedRecurrentOutput GRU::operator()(const Packed& x, const Tensor& h, Location where) const try {
  check_packed("GRU", x, where);
  RecurrentOutput result = call("GRU", {x.elements, h}, where, [&](const Tensor& elements, const Tensor& h) {
    Sequences sequences = sequences_of("GRU", elements, x, nets[0].input_size());
    return without_memory(run_module("GRU", nets, form_, is_training(), sequences, {h, {}}));
  });
  return {x.with(result.output), std::move(result.h_n)};
} catch (const std::bad_alloc&) {
  fail_for_memory("GRU", where);
}

RecurrentOutput RNN::operator()(const Arg& x, const Tensor& h, const Tensor& lengths) const try {
  return call("RNN", {tensor_of("RNN", x), h}, x.location(), [&](const Tensor& x, const Tensor& h) {
    Sequences sequences = sequences_of("RNN", x, lengths, nets[0].input_size());
    return padded_as(without_memory(run_module("RNN", nets, form_, is_training(), sequences, {h, {}})), x);
  });
} catch (const std::bad_alloc&) {
  fail_for_memory("RNN", x.location());
}

PackedRecurrentOutput RNN::operator()(const Packed& x, const Tensor& h, Location where) const try {
  check_packed("RNN", x, where);
  RecurrentOutput result = call("RNN", {x.elements, h}, where, [&](const Tensor& elements, const Tensor& h) {
    Sequences sequences = sequences_of("RNN", elements, x, nets[0].input_size());
    return without_memory(run_module("RNN", nets, form_, is_training(), sequences, {h, {}}));
  });
  return {x.with(result.output), std::move(result.h_n)};
} catch (const std::bad_alloc&) {
  fail_for_memory("RNN", where);
}

}  // namespace reel::nn
