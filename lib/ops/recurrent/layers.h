#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "../../dispatch/autocast.h"
#include "recurrent.h"

// Layers of recurrent nets over sequences, for the ops lstm, gru and rnn and for the modules LSTM, GRU and RNN, which add
// dropout between layers, packed sequences, and cells that run step by step.

namespace reel::detail {

/// Sequences before packing.
struct Sequences {
  Tensor input;     ///< as passed by the caller; cast within an autocast scope
  Tensor elements;  ///< (rows, I)
  Packing packing;
  std::int64_t batch;
};

/// The sequences x (T, B, I), of all T steps or, where they are defined, of `lengths` steps. Throws: as
/// `checked_lengths`; ShapeError for more steps than can be counted.
Sequences padded_sequences(const char* op, const Tensor& x, const Tensor& lengths, Location where);

/// Layers of nets, whose errors are in the name of `op`.
struct RecurrentLayers {
  const char* op;
  std::size_t nets;
  bool bidirectional;
  std::int64_t h_width, c_width;  // c_width is 0 if there is no c
  Location where;
  /// Merges the outputs (rows, H) of both directions; null: concatenates them.
  std::function<Tensor(const Tensor& forward, const Tensor& reverse)> merge = nullptr;
};

/// The states with zeros in place of undefined ones. Throws: as check_fits_input, unless they are (nets, B, width).
LSTMState completed_states(const RecurrentLayers& layers, const Sequences& sequences, LSTMState states);
/// The result for sequences without a step, which depends on the parameters as any other does.
LSTMOutput output_without_steps(const RecurrentLayers& layers, const Sequences& sequences, const LSTMState& states,
                                std::vector<Tensor> parameters);

/// Runs layers on sequences. run(net, reverse, rows, state) → NetOutput; between(rows) → the rows that the next layer
/// gets; parameters() → those of all nets. Returns an output (rows, …) in the order before packing.
template <class Parameters, class Run, class Between>
LSTMOutput run_sequences(const RecurrentLayers& layers, const Sequences& sequences, LSTMState states,
                         Parameters parameters, Run run, Between between) {
  states = completed_states(layers, sequences, std::move(states));
  if (sequences.packing.rows == 0) return output_without_steps(layers, sequences, states, parameters());
  auto merge = [&](const std::vector<Tensor>& outputs) {
    if (!layers.bidirectional) return outputs[0];
    return layers.merge ? layers.merge(outputs[0], outputs[1]) : concat(outputs, 1);
  };
  return run_layers(sequences.packing, sequences.elements, std::move(states), layers.nets, layers.bidirectional, run,
                    between, merge);
}

/// Returns the hidden size of the nets of layers with one or two directions. Throws: ShapeError if their number does not
/// make layers, and if sizes differ; as check_weights.
std::int64_t check_nets(const char* op, RecurrentCell cell, const Sequences& sequences,
                        std::span<const RecurrentWeights> weights, bool bidirectional, Location where);

/// Runs layers of nets, each of which is one op. `between` as in run_sequences.
template <class Between>
LSTMOutput run_nets(const char* op, RecurrentCell cell, const Sequences& sequences, LSTMState states,
                    std::span<const RecurrentWeights> weights, bool bidirectional, Between between, Location where) {
  std::vector<RecurrentWeights> cast_weights;
  if (is_autocasting()) {
    for (const RecurrentWeights& net : weights) cast_weights.push_back(autocast_operand(net, where));
    weights = cast_weights;
  }
  std::int64_t size = check_nets(op, cell, sequences, weights, bidirectional, where);
  RecurrentLayers layers{op, weights.size(), bidirectional, size, cell == RecurrentCell::lstm ? size : 0, where};
  auto parameters = [&] {
    std::vector<Tensor> all;
    for (const RecurrentWeights& net : weights) all.insert(all.end(), {net.W_x, net.W_h, net.bias});
    return all;
  };
  auto run = [&](std::size_t net, bool reverse, const Tensor& rows, const LSTMState& before) {
    return run_packed_net(cell, reverse, rows, before, sequences.packing.counts, weights[net], where);
  };
  return run_sequences(layers, sequences, std::move(states), parameters, run, between);
}

/// The output with the rows as (T, B), for padded sequences x.
template <class Output>
Output padded_as(Output output, const Tensor& x) {
  output.output = reshape(output.output, {x.size(0), x.size(1), output.output.size(1)});
  return output;
}

}  // namespace reel::detail
