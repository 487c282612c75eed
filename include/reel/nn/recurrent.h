#pragma once

#include <type_traits>

#include <reel/nn/gru.h>
#include <reel/nn/lstm.h>
#include <reel/nn/module_list.h>
#include <reel/nn/packed.h>
#include <reel/nn/recurrent/options.h>
#include <reel/nn/rnn.h>
#include <reel/nn/unroll.h>

/// \file
/// Layers of recurrent cells over sequences: padded ones (T, B, I), all of T steps or of `lengths` (B) steps, or
/// Packed, which takes no time and no memory for padding. The equations, states and the order of the nets are those of
/// ops/recurrent.h: there are `layers` nets, or twice as many with two directions, and each is a cell with its
/// parameters.
///
///     nn::LSTM encoder{*this, "encoder", 64, 128, {.layers = 2, .bidirectional = true, .dropout = 0.3}};
///     auto [output, h_n, c_n] = encoder(words);                // Packed: output.elements (N, 256), h_n (4, B, 128)

namespace reel::nn {

/// The structure of a recurrent layer.
struct RecurrentForm {
  bool bidirectional = false,                       ///< whether each layer has a second net in reverse
      variational = false;                          ///< whether dropout has one mask for all steps of a sequence
  double dropout = 0;                               ///< the probability of dropout between layers
  MergeDirections merge = MergeDirections::concat;  ///< how the outputs of two directions become one
};

/// The result of LSTM for Packed sequences.
struct PackedLSTMOutput {
  Packed
      output;  ///< elements (N, P), with two directions (N, 2 P) unless merged otherwise: h after each step, of the last layer
  Tensor h_n;  ///< (nets, B, P): h after each net's last step
  Tensor c_n;  ///< (nets, B, H): c after each net's last step
};

/// The result of GRU and RNN for Packed sequences.
struct PackedRecurrentOutput {
  Packed
      output;  ///< elements (N, H), with two directions (N, 2 H) unless merged otherwise: h after each step, of the last layer
  Tensor h_n;  ///< (nets, B, H): h after each net's last step
};

/// Layers of recurrent cells over sequences, which run as one op for all steps, or as a loop over the cells where those
/// have hooks, projections or layer norms. A state is h (nets, B, P), and c (nets, B, H) of LSTM; P is H unless there is
/// a projection.
template <class Cell>
struct RecurrentLayer : Module {
  using Options = RecurrentModuleOptions<Cell, true>;  ///< the options
  using State = StateOf<Cell>;                         ///< LSTMState, or Tensor for h alone
  /// The result for padded sequences.
  using Output = std::conditional_t<std::is_same_v<Cell, LSTMCell>, LSTMOutput, RecurrentOutput>;
  /// The result for packed sequences.
  using PackedOutput = std::conditional_t<std::is_same_v<Cell, LSTMCell>, PackedLSTMOutput, PackedRecurrentOutput>;

  ModuleList<Cell> nets;  ///< the cells, layer by layer; with two directions forward, then reverse

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless the sizes and the number of layers are positive and the projection in [0, hidden_size);
  /// Error unless the dropout is in [0, 1]; DTypeError for a `weight_dtype` other than bf16 and f16, or with parameters
  /// that are not f32.
  RecurrentLayer(std::int64_t input_size, std::int64_t hidden_size, Options options = {},
                 Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless the sizes and the
  /// number of layers are positive and the projection in [0, hidden_size); Error unless the dropout is in [0, 1];
  /// DTypeError for a `weight_dtype` other than bf16 and f16, or with parameters that are not f32.
  RecurrentLayer(Module& parent, std::string_view name, std::int64_t input_size, std::int64_t hidden_size,
                 Options options = {}, Location where = Location::here())
      : RecurrentLayer(input_size, hidden_size, options, where) {
    join(parent, name, where);
  }

  /// The outputs of the last layer and the final states for padded sequences x (T, B, I), of all T steps or of lengths
  /// (B), from a state h (nets, B, P), and c (nets, B, H) of LSTM; undefined for zeros.
  /// Throws: ShapeError or DTypeError for inputs and states that do not fit; IndexError for a length outside [0, T];
  /// Error if x is undefined.
  Output operator()(const Arg& x, const State& state = {}, const Tensor& lengths = {}) const;
  /// The outputs of the last layer and the final states for packed sequences of elements (N, I), from a state h (nets,
  /// B, P), and c (nets, B, H) of LSTM; undefined for zeros.
  /// Throws: ShapeError or DTypeError for inputs and states that do not fit; Error if the elements are undefined.
  PackedOutput operator()(const Packed& x, const State& state = {}, Location where = Location::here()) const;

  /// True if each layer has a second net in reverse.
  bool is_bidirectional() const { return form_.bidirectional; }

 private:
  // Runs f(x, states) as a call of this module, whose hooks see x and the tensors of the state.
  template <class F>
  Output call_with(const Tensor& x, const State& state, Location where, F f) const;

  RecurrentForm form_;
};

extern template struct RecurrentLayer<LSTMCell>;
extern template struct RecurrentLayer<GRUCell>;
extern template struct RecurrentLayer<RNNCell>;

// Structs of their own, so that errors, summaries and recordings call them by these names.

/// Layers of long short-term memories over sequences: `lstm`, which takes all steps at once, or a loop over the cells
/// where those are not plain.
/// Source: PyTorch's LSTM.
struct LSTM : RecurrentLayer<LSTMCell> {
  using RecurrentLayer::RecurrentLayer;
};

/// Layers of gated recurrent units over sequences: `gru`, which takes all steps at once. Source: PyTorch's GRU.
struct GRU : RecurrentLayer<GRUCell> {
  using RecurrentLayer::RecurrentLayer;
};

/// Layers of plain recurrent nets over sequences: `rnn`, which takes all steps at once. Source: PyTorch's RNN.
struct RNN : RecurrentLayer<RNNCell> {
  using RecurrentLayer::RecurrentLayer;
};

}  // namespace reel::nn
