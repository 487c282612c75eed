#pragma once

#include <reel/nn/gru.h>
#include <reel/nn/lstm.h>
#include <reel/nn/module_list.h>
#include <reel/nn/packed.h>
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

/// Options of LSTM.
struct LSTMOptions {
  /// The number of layers; at least 1. Default 1.
  std::int64_t layers = 1;
  /// Whether each layer has a second net in reverse, whose outputs are merged with those of the first. Default false.
  bool bidirectional = false;
  /// How the outputs of two directions become one, in each layer. Default: concatenated.
  MergeDirections merge = MergeDirections::concat;
  /// The probability, in [0, 1], with which an element of the output of a layer, except the last, becomes 0 while
  /// training. Default 0.
  double dropout = 0;
  /// Whether dropout has one mask for all steps of a sequence, instead of a new one for each. Default false.
  /// Source: Gal and Ghahramani, A theoretically grounded application of dropout in recurrent neural networks (2016).
  bool variational = false;
  /// Added to the initial bias of each forget gate; 1 makes a new cell remember. Default 0.
  /// Source: Jozefowicz et al., An empirical exploration of recurrent network architectures (ICML 2015).
  double forget_bias = 0;
  /// The width P of h, in [0, H): h' = (o tanh(c')) W_r. 0 (default): no projection, P is H.
  /// Source: Sak et al., Long short-term memory recurrent neural network architectures for large scale acoustic
  /// modeling (2014).
  std::int64_t projection = 0;
  /// Whether to normalise: a = norm(x W_x) + norm(h W_h) + b and h' = o tanh(norm(c')), each norm with a scale of its
  /// own, the last with a shift. Default false.
  /// Source: Ba et al., Layer normalization (2016), supplement.
  bool layer_norm = false;
  Initialiser input_initialiser = {},  ///< of W_x, each gate's block by itself; null (default): uniform on ±1/√H
      recurrent_initialiser = {},      ///< of W_h, each gate's block by itself; null (default): uniform on ±1/√H
      bias_initialiser = {};  ///< of the bias, each gate's block by itself; null (default): uniform on ±1/√H
  DType dtype = DType::f32;   ///< the parameters' dtype, floating; default f32
  /// bf16 or f16: W_x and W_h, which stay f32 parameters, are rounded to it in every product, so that on a CPU a step of
  /// few examples reads half as many bytes; see RecurrentWeights. Unset (default), or `dtype`: not rounded.
  std::optional<DType> weight_dtype = {};
  /// The generator of the initial values; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// The result of LSTM for Packed sequences.
struct PackedLSTMOutput {
  Packed
      output;  ///< elements (N, P), with two directions (N, 2 P) unless merged otherwise: h after each step, of the last layer
  Tensor h_n;  ///< (nets, B, P): h after each net's last step
  Tensor c_n;  ///< (nets, B, H): c after each net's last step
};

/// Layers of long short-term memories over sequences: `lstm`, which takes all steps at once, or a loop over the cells
/// where those are not plain.
/// Source: PyTorch's LSTM.
struct LSTM : Module {
  ModuleList<LSTMCell> nets;  ///< the cells, layer by layer; with two directions forward, then reverse

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless the sizes and the number of layers are positive and the projection in [0, hidden_size);
  /// Error unless the dropout is in [0, 1]; DTypeError for a `weight_dtype` other than bf16 and f16, or with parameters
  /// that are not f32.
  LSTM(std::int64_t input_size, std::int64_t hidden_size, LSTMOptions options = {}, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless the sizes and the
  /// number of layers are positive and the projection in [0, hidden_size); Error unless the dropout is in [0, 1];
  /// DTypeError for a `weight_dtype` other than bf16 and f16, or with parameters that are not f32.
  LSTM(Module& parent, std::string_view name, std::int64_t input_size, std::int64_t hidden_size,
       LSTMOptions options = {}, Location where = Location::here())
      : LSTM(input_size, hidden_size, options, where) {
    join(parent, name, where);
  }

  /// The outputs of the last layer and the final states for padded sequences x (T, B, I), of all T steps or of lengths
  /// (B). State: h (nets, B, P), c (nets, B, H); undefined for zeros.
  /// Throws: ShapeError or DTypeError for inputs and states that do not fit; IndexError for a length outside [0, T];
  /// Error if x is undefined.
  LSTMOutput operator()(const Arg& x, const LSTMState& state = {}, const Tensor& lengths = {}) const;
  /// The outputs of the last layer and the final states for packed sequences of elements (N, I). State: h (nets, B, P),
  /// c (nets, B, H); undefined for zeros.
  /// Throws: ShapeError or DTypeError for inputs and states that do not fit; Error if the elements are undefined.
  PackedLSTMOutput operator()(const Packed& x, const LSTMState& state = {}, Location where = Location::here()) const;

  /// True if each layer has a second net in reverse.
  bool is_bidirectional() const { return form_.bidirectional; }

 private:
  RecurrentForm form_;
};

/// Options of GRU.
struct GRUOptions {
  /// The number of layers; at least 1. Default 1.
  std::int64_t layers = 1;
  /// Whether each layer has a second net in reverse, whose outputs are merged with those of the first. Default false.
  bool bidirectional = false;
  /// How the outputs of two directions become one, in each layer. Default: concatenated.
  MergeDirections merge = MergeDirections::concat;
  /// The probability, in [0, 1], with which an element of the output of a layer, except the last, becomes 0 while
  /// training. Default 0.
  double dropout = 0;
  /// Whether dropout has one mask for all steps of a sequence, instead of a new one for each. Default false.
  /// Source: Gal and Ghahramani, A theoretically grounded application of dropout in recurrent neural networks (2016).
  bool variational = false;
  Initialiser input_initialiser = {},  ///< of W_x, each gate's block by itself; null (default): uniform on ±1/√H
      recurrent_initialiser = {},      ///< of W_h, each gate's block by itself; null (default): uniform on ±1/√H
      bias_initialiser = {};  ///< of the bias, each gate's block by itself; null (default): uniform on ±1/√H
  DType dtype = DType::f32;   ///< the parameters' dtype, floating; default f32
  /// bf16 or f16: W_x and W_h, which stay f32 parameters, are rounded to it in every product, so that on a CPU a step of
  /// few examples reads half as many bytes; see RecurrentWeights. Unset (default), or `dtype`: not rounded.
  std::optional<DType> weight_dtype = {};
  /// The generator of the initial values; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// The result of GRU and RNN for Packed sequences.
struct PackedRecurrentOutput {
  Packed
      output;  ///< elements (N, H), with two directions (N, 2 H) unless merged otherwise: h after each step, of the last layer
  Tensor h_n;  ///< (nets, B, H): h after each net's last step
};

/// Layers of gated recurrent units over sequences: `gru`, which takes all steps at once. Source: PyTorch's GRU.
struct GRU : Module {
  ModuleList<GRUCell> nets;  ///< the cells, layer by layer; with two directions forward, then reverse

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless the sizes and the number of layers are positive; Error unless the dropout is in [0, 1];
  /// DTypeError for a `weight_dtype` other than bf16 and f16, or with parameters that are not f32.
  GRU(std::int64_t input_size, std::int64_t hidden_size, GRUOptions options = {}, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless the sizes and the
  /// number of layers are positive; Error unless the dropout is in [0, 1]; DTypeError for a `weight_dtype` other than
  /// bf16 and f16, or with parameters that are not f32.
  GRU(Module& parent, std::string_view name, std::int64_t input_size, std::int64_t hidden_size, GRUOptions options = {},
      Location where = Location::here())
      : GRU(input_size, hidden_size, options, where) {
    join(parent, name, where);
  }

  /// The outputs of the last layer and the final states for padded sequences x (T, B, I), of all T steps or of lengths
  /// (B). h: (nets, B, H); undefined for zeros.
  /// Throws: ShapeError or DTypeError for inputs and states that do not fit; IndexError for a length outside [0, T];
  /// Error if x is undefined.
  RecurrentOutput operator()(const Arg& x, const Tensor& h = {}, const Tensor& lengths = {}) const;
  /// The outputs of the last layer and the final states for packed sequences of elements (N, I). h: (nets, B, H);
  /// undefined for zeros.
  /// Throws: ShapeError or DTypeError for inputs and states that do not fit; Error if the elements are undefined.
  PackedRecurrentOutput operator()(const Packed& x, const Tensor& h = {}, Location where = Location::here()) const;

  /// True if each layer has a second net in reverse.
  bool is_bidirectional() const { return form_.bidirectional; }

 private:
  RecurrentForm form_;
};

/// Options of RNN.
struct RNNLayerOptions {
  /// The number of layers; at least 1. Default 1.
  std::int64_t layers = 1;
  /// Whether each layer has a second net in reverse, whose outputs are merged with those of the first. Default false.
  bool bidirectional = false;
  /// How the outputs of two directions become one, in each layer. Default: concatenated.
  MergeDirections merge = MergeDirections::concat;
  /// The probability, in [0, 1], with which an element of the output of a layer, except the last, becomes 0 while
  /// training. Default 0.
  double dropout = 0;
  /// Whether dropout has one mask for all steps of a sequence, instead of a new one for each. Default false.
  /// Source: Gal and Ghahramani, A theoretically grounded application of dropout in recurrent neural networks (2016).
  bool variational = false;
  RNNActivation activation = RNNActivation::tanh;  ///< default tanh
  Initialiser input_initialiser = {},              ///< of W_x; null (default): uniform on ±1/√H
      recurrent_initialiser = {},                  ///< of W_h; null (default): uniform on ±1/√H
      bias_initialiser = {};                       ///< of the bias; null (default): uniform on ±1/√H
  DType dtype = DType::f32;                        ///< the parameters' dtype, floating; default f32
  /// bf16 or f16: W_x and W_h, which stay f32 parameters, are rounded to it in every product, so that on a CPU a step of
  /// few examples reads half as many bytes; see RecurrentWeights. Unset (default), or `dtype`: not rounded.
  std::optional<DType> weight_dtype = {};
  /// The generator of the initial values; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// Layers of plain recurrent nets over sequences: `rnn`, which takes all steps at once. Source: PyTorch's RNN.
struct RNN : Module {
  ModuleList<RNNCell> nets;  ///< the cells, layer by layer; with two directions forward, then reverse

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless the sizes and the number of layers are positive; Error unless the dropout is in [0, 1];
  /// DTypeError for a `weight_dtype` other than bf16 and f16, or with parameters that are not f32.
  RNN(std::int64_t input_size, std::int64_t hidden_size, RNNLayerOptions options = {},
      Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless the sizes and the
  /// number of layers are positive; Error unless the dropout is in [0, 1]; DTypeError for a `weight_dtype` other than
  /// bf16 and f16, or with parameters that are not f32.
  RNN(Module& parent, std::string_view name, std::int64_t input_size, std::int64_t hidden_size,
      RNNLayerOptions options = {}, Location where = Location::here())
      : RNN(input_size, hidden_size, options, where) {
    join(parent, name, where);
  }

  /// The outputs of the last layer and the final states for padded sequences x (T, B, I), of all T steps or of lengths
  /// (B). h: (nets, B, H); undefined for zeros.
  /// Throws: ShapeError or DTypeError for inputs and states that do not fit; IndexError for a length outside [0, T];
  /// Error if x is undefined.
  RecurrentOutput operator()(const Arg& x, const Tensor& h = {}, const Tensor& lengths = {}) const;
  /// The outputs of the last layer and the final states for packed sequences of elements (N, I). h: (nets, B, H);
  /// undefined for zeros.
  /// Throws: ShapeError or DTypeError for inputs and states that do not fit; Error if the elements are undefined.
  PackedRecurrentOutput operator()(const Packed& x, const Tensor& h = {}, Location where = Location::here()) const;

  /// True if each layer has a second net in reverse.
  bool is_bidirectional() const { return form_.bidirectional; }

 private:
  RecurrentForm form_;
};

}  // namespace reel::nn
