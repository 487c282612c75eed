#pragma once

#include <reel/nn/gru.h>
#include <reel/nn/lstm.h>
#include <reel/nn/module_list.h>
#include <reel/nn/packed.h>
#include <reel/nn/rnn.h>

// Layers of recurrent cells over sequences: padded ones (T, B, I), all of T steps or of `lengths` (B) steps, or Packed,
// which takes no time and no memory for padding. The equations, what a state is and how nets are numbered stand in
// ops/recurrent.h: there are `layers` nets, or twice as many with two directions, and each is a cell with its parameters.
// The dropout, while training, is that of the outputs of all layers but the last.
//
//     nn::LSTM encoder{*this, "encoder", 64, 128, {.layers = 2, .bidirectional = true, .dropout = 0.3}};
//     auto [output, h_n, c_n] = encoder(words);                // Packed: output.elements (N, 256), h_n (4, B, 128)
//
// All throw ShapeError, DTypeError for inputs and states that do not fit, IndexError for a length outside [0, T]; their
// constructors throw ShapeError unless sizes and the number of layers are positive, Error unless the dropout lies in [0, 1].

namespace reel::nn {

/// How the nets of a recurrent layer hang together.
struct RecurrentForm {
  bool bidirectional = false, variational = false;
  double dropout = 0;
};

struct LSTMOptions {
  std::int64_t layers = 1;
  bool bidirectional = false;
  /// Probability with which an element of what goes from layer to layer becomes 0 while training.
  double dropout = 0;
  /// One mask for all steps of a sequence, in place of a new one for each.
  /// Source: Gal and Ghahramani, A theoretically grounded application of dropout in recurrent neural networks (2016).
  bool variational = false;
  // As of LSTMCell:
  double forget_bias = 0;
  std::int64_t projection = 0;
  bool layer_norm = false;
  Initialiser input_initialiser = {}, recurrent_initialiser = {}, bias_initialiser = {};
  DType dtype = DType::f32;
  Generator* generator = nullptr;
};

struct PackedLSTMOutput {
  Packed output;  ///< elements (N, P), with two directions (N, 2 P): h after each step, of the last layer
  Tensor h_n;     ///< (nets, B, P)
  Tensor c_n;     ///< (nets, B, H)
};

/// Layers of long short-term memories: `lstm`, which takes all steps at once, or a loop over the cells where those are not
/// plain. Source: PyTorch's LSTM.
struct LSTM : Module {
  ModuleList<LSTMCell> nets;

  LSTM(std::int64_t input_size, std::int64_t hidden_size, LSTMOptions options = {}, Location where = Location::here());
  LSTM(Module& parent, std::string_view name, std::int64_t input_size, std::int64_t hidden_size,
       LSTMOptions options = {}, Location where = Location::here())
      : LSTM(input_size, hidden_size, options, where) {
    join(parent, name, where);
  }

  /// h of the state: (nets, B, P), c: (nets, B, H); undefined for zeros.
  LSTMOutput operator()(const Arg& x, const LSTMState& state = {}, const Tensor& lengths = {}) const;
  PackedLSTMOutput operator()(const Packed& x, const LSTMState& state = {}, Location where = Location::here()) const;

 private:
  RecurrentForm form_;
};

struct GRUOptions {
  std::int64_t layers = 1;
  bool bidirectional = false;
  /// As of LSTM.
  double dropout = 0;
  bool variational = false;
  // As of GRUCell:
  Initialiser input_initialiser = {}, recurrent_initialiser = {}, bias_initialiser = {};
  DType dtype = DType::f32;
  Generator* generator = nullptr;
};

struct PackedRecurrentOutput {
  Packed output;  ///< elements (N, H), with two directions (N, 2 H): h after each step, of the last layer
  Tensor h_n;     ///< (nets, B, H)
};

/// Layers of gated recurrent units. Source: PyTorch's GRU.
struct GRU : Module {
  ModuleList<GRUCell> nets;

  GRU(std::int64_t input_size, std::int64_t hidden_size, GRUOptions options = {}, Location where = Location::here());
  GRU(Module& parent, std::string_view name, std::int64_t input_size, std::int64_t hidden_size, GRUOptions options = {},
      Location where = Location::here())
      : GRU(input_size, hidden_size, options, where) {
    join(parent, name, where);
  }

  /// h: (nets, B, H); undefined for zeros.
  RecurrentOutput operator()(const Arg& x, const Tensor& h = {}, const Tensor& lengths = {}) const;
  PackedRecurrentOutput operator()(const Packed& x, const Tensor& h = {}, Location where = Location::here()) const;

 private:
  RecurrentForm form_;
};

struct RNNOptions {
  std::int64_t layers = 1;
  bool bidirectional = false;
  /// As of LSTM.
  double dropout = 0;
  bool variational = false;
  // As of RNNCell:
  RNNActivation activation = RNNActivation::tanh;
  Initialiser input_initialiser = {}, recurrent_initialiser = {}, bias_initialiser = {};
  DType dtype = DType::f32;
  Generator* generator = nullptr;
};

/// Layers of plain recurrent nets. Source: PyTorch's RNN.
struct RNN : Module {
  ModuleList<RNNCell> nets;

  RNN(std::int64_t input_size, std::int64_t hidden_size, RNNOptions options = {}, Location where = Location::here());
  RNN(Module& parent, std::string_view name, std::int64_t input_size, std::int64_t hidden_size, RNNOptions options = {},
      Location where = Location::here())
      : RNN(input_size, hidden_size, options, where) {
    join(parent, name, where);
  }

  /// h: (nets, B, H); undefined for zeros.
  RecurrentOutput operator()(const Arg& x, const Tensor& h = {}, const Tensor& lengths = {}) const;
  PackedRecurrentOutput operator()(const Packed& x, const Tensor& h = {}, Location where = Location::here()) const;

 private:
  RecurrentForm form_;
};

}  // namespace reel::nn
