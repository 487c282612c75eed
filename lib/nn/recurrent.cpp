#include <reel/nn/recurrent.h>

#include <reel/ops.h>

#include <new>

#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../dispatch/autocast.h"
#include "../ops/recurrent/packing.h"
#include "../ops/recurrent/recurrent.h"
#include "packed.h"

namespace reel::nn {

using namespace detail;

namespace {

template <class Options>
RecurrentForm form_of(const char* name, const Options& options, Location where) {
  if (options.layers < 1) fail<ShapeError>(name, where, "there cannot be {} layers", options.layers);
  if (!(options.dropout >= 0 && options.dropout <= 1))
    fail<Error>(name, where, "the dropout {} does not lie in [0, 1]", options.dropout);
  return {options.bidirectional, options.variational, options.dropout};
}

// Adds the cells of all layers, whose outputs have width `width`.
template <class Cell, class Options>
void add_nets(ModuleList<Cell>& nets, std::int64_t input_size, std::int64_t hidden_size, std::int64_t width,
              std::int64_t layers, bool bidirectional, const Options& options, Location where) {
  std::int64_t directions = bidirectional ? 2 : 1;
  for (std::int64_t net = 0; net < layers * directions; ++net)
    nets.push_back(Cell(net < directions ? input_size : directions * width, hidden_size, options, where), where);
}

// Sequences in their order before packing.
struct Sequences {
  Tensor input;     // as passed by the caller
  Tensor elements;  // (rows, I)
  Packing packing;
  std::int64_t batch;
};

Sequences sequences_of(const char* name, const Tensor& x, const Tensor& lengths, std::int64_t input_size) {
  if (x.rank() != 3 || x.size(2) != input_size)
    fail<ShapeError>(name, {}, "the input {} is not (T, B, {})", describe(x), input_size);
  std::int64_t steps = x.size(0), batch = x.size(1);
  Tensor input = autocast_operand(Precision::full, x, {}), elements = reshape(input, {steps * batch, input_size});
  if (!lengths.defined()) return {input, elements, rectangle(steps, batch), batch};
  DeviceGuard here(x.device());
  return {input, elements, pack_by_step(checked_lengths(name, lengths, x, {}), steps * batch), batch};
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

// The widths of a layer's states h and c, 0 if there is none.
struct StateWidths {
  std::int64_t h, c;
};

// run(net, reverse, rows, state) → NetOutput
template <class Nets, class Run>
LSTMOutput run_sequences(const char* name, const RecurrentForm& form, bool training, const Nets& nets,
                         StateWidths widths, const Sequences& sequences, LSTMState states, Run run) {
  const Tensor& elements = sequences.elements;
  check_floating(name, sequences.input, {});
  TensorOptions options{.dtype = elements.dtype(), .device = elements.device()};
  auto complete = [&](const char* what, Tensor& state, std::int64_t width) {
    Shape shape{static_cast<std::int64_t>(nets.size()), sequences.batch, width};
    state = state.defined() ? autocast_operand(Precision::full, state, {}) : zeros(shape, options);
    check_fits_input(name, what, state, shape, sequences.input, {});
  };
  complete("h", states.h, widths.h);
  if (widths.c > 0) complete("c", states.c, widths.c);
  const Packing& packing = sequences.packing;
  if (packing.rows == 0) {
    std::vector<Tensor> used = nets.parameters();
    used.push_back(elements);
    Tensor nothing = empty_sum(used, elements.dtype());
    return {zeros({elements.size(0), (form.bidirectional ? 2 : 1) * widths.h}, options) + nothing, states.h + nothing,
            widths.c > 0 ? states.c + nothing : Tensor()};
  }
  return run_layers(packing, elements, std::move(states), nets.size(), form.bidirectional, run, [&](Tensor rows) {
    return training && form.dropout > 0 ? dropped(rows, packing.counts, form) : rows;
  });
}

// Runs all steps as one op.
template <class Cell>
NetOutput run_fused(const char* name, RecurrentCell kind, const Cell& cell, const Sequences& sequences, bool reverse,
                    const Tensor& rows, const LSTMState& before) {
  RecurrentWeights weights = autocast_operand(cell.weights(), {});
  check_weights(name, kind, weights, rows.size(1), sequences.input, {});
  return run_packed_net(kind, reverse, rows, before, sequences.packing.counts, weights, {});
}

// Pads the output if x was padded.
template <class Output>
Output padded_as(Output output, const Tensor& x) {
  output.output = reshape(output.output, {x.size(0), x.size(1), output.output.size(1)});
  return output;
}

constexpr const char* lstm_name = "LSTM";

// For a cell that is run step by step: throws unless its weights match the input, as a fused one does.
void check_steps(const LSTMCell& cell, const Tensor& input) {
  RecurrentWeights weights = autocast_operand(cell.weights(), {});
  check_fits_input(lstm_name, "W_h", weights.W_h, weights.W_h.shape(), input, {});
  check_fits_input(lstm_name, "W_x", weights.W_x, weights.W_x.shape(), input, {});
}

// Calls the cell for one step, so that its hooks run.
LSTMState call_cell(const LSTMCell& cell, const Tensor& x, const LSTMState& state) { return cell(x, state); }
template <class Cell>
LSTMState call_cell(const Cell& cell, const Tensor& x, const LSTMState& state) {
  return {cell(x, state.h), {}};
}

template <class Cell>
NetOutput run_hooked(const Cell& cell, const Sequences& sequences, bool reverse, const Tensor& rows,
                     const LSTMState& before) {
  auto step = [&](const Tensor& x, const LSTMState& state) { return call_cell(cell, x, state); };
  return run_steps(rows, before, sequences.packing.counts, reverse, step);
}

LSTMOutput run_lstm(const ModuleList<LSTMCell>& nets, const RecurrentForm& form, bool training,
                    const Sequences& sequences, const LSTMState& state) {
  StateWidths widths{nets[0].output_size(), nets[0].hidden_size()};
  return run_sequences(lstm_name, form, training, nets, widths, sequences, state,
                       [&](std::size_t net, bool reverse, const Tensor& rows, const LSTMState& before) {
                         const LSTMCell& cell = nets[net];
                         if (cell.has_hooks()) return run_hooked(cell, sequences, reverse, rows, before);
                         if (cell.is_plain())
                           return run_fused(lstm_name, RecurrentCell::lstm, cell, sequences, reverse, rows, before);
                         check_steps(cell, sequences.input);
                         auto step = [&](const Tensor& p, const LSTMState& state) { return cell.step(p, state); };
                         return run_steps(cell.project(rows), before, sequences.packing.counts, reverse, step);
                       });
}

RecurrentCell kind_of(const GRUCell&) { return RecurrentCell::gru; }
RecurrentCell kind_of(const RNNCell& cell) {
  return cell.activation == RNNActivation::relu ? RecurrentCell::rnn_relu : RecurrentCell::rnn_tanh;
}

// Runs GRU and RNN layers.
template <class Cell>
RecurrentOutput run_plain(const char* name, const ModuleList<Cell>& nets, const RecurrentForm& form, bool training,
                          const Sequences& sequences, const Tensor& h) {
  LSTMOutput result =
      run_sequences(name, form, training, nets, {nets[0].hidden_size(), 0}, sequences, {h, {}},
                    [&](std::size_t net, bool reverse, const Tensor& rows, const LSTMState& before) {
                      if (nets[net].has_hooks()) return run_hooked(nets[net], sequences, reverse, rows, before);
                      return run_fused(name, kind_of(nets[net]), nets[net], sequences, reverse, rows, before);
                    });
  return {std::move(result.output), std::move(result.h_n)};
}

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
                       .generator = options.generator};
  std::int64_t width = options.projection > 0 ? options.projection : hidden_size;
  add_nets(nets, input_size, hidden_size, width, options.layers, options.bidirectional, cell, where);
}

LSTMOutput LSTM::operator()(const Arg& x, const LSTMState& state, const Tensor& lengths) const try {
  return call(lstm_name, {tensor_of(lstm_name, x), state.h, state.c}, x.location(),
              [&](const Tensor& x, const Tensor& h, const Tensor& c) {
                Sequences sequences = sequences_of(lstm_name, x, lengths, nets[0].input_size());
                return padded_as(run_lstm(nets, form_, is_training(), sequences, {h, c}), x);
              });
} catch (const std::bad_alloc&) {
  fail_for_memory(lstm_name, x.location());
}

PackedLSTMOutput LSTM::operator()(const Packed& x, const LSTMState& state, Location where) const try {
  check_packed(lstm_name, x, where);
  LSTMOutput result = call(
      lstm_name, {x.elements, state.h, state.c}, where, [&](const Tensor& elements, const Tensor& h, const Tensor& c) {
        return run_lstm(nets, form_, is_training(), sequences_of(lstm_name, elements, x, nets[0].input_size()), {h, c});
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
                      .generator = options.generator};
  add_nets(nets, input_size, hidden_size, hidden_size, options.layers, options.bidirectional, cell, where);
}

RNN::RNN(std::int64_t input_size, std::int64_t hidden_size, RNNOptions options, Location where)
    : nets(*this, "nets"), form_(form_of("RNN", options, where)) {
  RNNCellOptions cell{.activation = options.activation,
                      .input_initialiser = options.input_initialiser,
                      .recurrent_initialiser = options.recurrent_initialiser,
                      .bias_initialiser = options.bias_initialiser,
                      .dtype = options.dtype,
                      .generator = options.generator};
  add_nets(nets, input_size, hidden_size, hidden_size, options.layers, options.bidirectional, cell, where);
}

RecurrentOutput GRU::operator()(const Arg& x, const Tensor& h, const Tensor& lengths) const try {
  return call("GRU", {tensor_of("GRU", x), h}, x.location(), [&](const Tensor& x, const Tensor& h) {
    Sequences sequences = sequences_of("GRU", x, lengths, nets[0].input_size());
    return padded_as(run_plain("GRU", nets, form_, is_training(), sequences, h), x);
  });
} catch (const std::bad_alloc&) {
  fail_for_memory("GRU", x.location());
}

PackedRecurrentOutput GRU::operator()(const Packed& x, const Tensor& h, Location where) const try {
  check_packed("GRU", x, where);
  RecurrentOutput result = call("GRU", {x.elements, h}, where, [&](const Tensor& elements, const Tensor& h) {
    Sequences sequences = sequences_of("GRU", elements, x, nets[0].input_size());
    return run_plain("GRU", nets, form_, is_training(), sequences, h);
  });
  return {x.with(result.output), std::move(result.h_n)};
} catch (const std::bad_alloc&) {
  fail_for_memory("GRU", where);
}

RecurrentOutput RNN::operator()(const Arg& x, const Tensor& h, const Tensor& lengths) const try {
  return call("RNN", {tensor_of("RNN", x), h}, x.location(), [&](const Tensor& x, const Tensor& h) {
    Sequences sequences = sequences_of("RNN", x, lengths, nets[0].input_size());
    return padded_as(run_plain("RNN", nets, form_, is_training(), sequences, h), x);
  });
} catch (const std::bad_alloc&) {
  fail_for_memory("RNN", x.location());
}

PackedRecurrentOutput RNN::operator()(const Packed& x, const Tensor& h, Location where) const try {
  check_packed("RNN", x, where);
  RecurrentOutput result = call("RNN", {x.elements, h}, where, [&](const Tensor& elements, const Tensor& h) {
    Sequences sequences = sequences_of("RNN", elements, x, nets[0].input_size());
    return run_plain("RNN", nets, form_, is_training(), sequences, h);
  });
  return {x.with(result.output), std::move(result.h_n)};
} catch (const std::bad_alloc&) {
  fail_for_memory("RNN", where);
}

}  // namespace reel::nn
