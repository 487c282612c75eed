#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>

#include <reel/nn/initialise.h>
#include <reel/nn/unroll.h>
#include <reel/ops/recurrent.h>

namespace reel::nn {

struct LSTMCell;
struct GRUCell;
struct RNNCell;

/// The type of an option that a module does not have: a program that gives it a value does not compile.
class NoOption {
  template <class Cell, bool is_layer>
  friend struct RecurrentModuleOptions;

  template <class T>
  explicit NoOption(T) {}
};

/// Options of a recurrent cell, or of a layer of such cells. A module has all that are not said to be of others.
template <class Cell, bool is_layer>
struct RecurrentModuleOptions {
  /// An option of layers.
  template <class T>
  using LayerOption = std::conditional_t<is_layer, T, NoOption>;
  /// An option of LSTM and LSTMCell.
  template <class T>
  using LSTMOption = std::conditional_t<std::is_same_v<Cell, LSTMCell>, T, NoOption>;
  /// An option of RNN and RNNCell.
  template <class T>
  using RNNOption = std::conditional_t<std::is_same_v<Cell, RNNCell>, T, NoOption>;

  /// Layers only: the number of layers; at least 1. Default 1.
  LayerOption<std::int64_t> layers{1};
  /// Layers only: whether each layer has a second net in reverse, whose outputs are merged with those of the first.
  /// Default false.
  LayerOption<bool> bidirectional{false};
  /// Layers only: how the outputs of two directions become one, in each layer. Default: concatenated.
  LayerOption<MergeDirections> merge{MergeDirections::concat};
  /// Layers only: the probability, in [0, 1], with which an element of the output of a layer, except the last, becomes
  /// 0 while training. Default 0.
  LayerOption<double> dropout{0};
  /// Layers only: whether dropout has one mask for all steps of a sequence instead of one for each. Default false.
  /// Source: Gal and Ghahramani, A theoretically grounded application of dropout in recurrent neural networks (2016).
  LayerOption<bool> variational{false};
  /// LSTM and LSTMCell only: added to the initial bias of each forget gate; 1 makes a new cell remember. Default 0.
  /// Source: Jozefowicz et al., An empirical exploration of recurrent network architectures (ICML 2015).
  LSTMOption<double> forget_bias{0};
  /// LSTM and LSTMCell only: the width P of h, in [0, H): h' = (o tanh(c')) W_r. 0 (default): no projection, P is H.
  /// Source: Sak et al., Long short-term memory recurrent neural network architectures for large scale acoustic
  /// modeling (2014).
  LSTMOption<std::int64_t> projection{0};
  /// LSTM and LSTMCell only: whether to normalise: a = norm(x W_x) + norm(h W_h) + b and h' = o tanh(norm(c')), each
  /// norm with a scale of its own, the last with a shift. Default false.
  /// Source: Ba et al., Layer normalization (2016), supplement.
  LSTMOption<bool> layer_norm{false};
  /// RNN and RNNCell only: tanh (default) or relu.
  RNNOption<RNNActivation> activation{RNNActivation::tanh};
  Initialiser input_initialiser{},  ///< of W_x, each gate's block by itself; null (default): uniform on ±1/√H
      recurrent_initialiser{},      ///< of W_h, each gate's block by itself; null (default): uniform on ±1/√H
      bias_initialiser{};           ///< of the bias, each gate's block by itself; null (default): uniform on ±1/√H
  DType dtype = DType::f32;         ///< the parameters' dtype, floating; default f32
  /// bf16 or f16: W_x and W_h, which stay f32 parameters, are rounded to it in every product, so that on a CPU a step of
  /// few examples reads half as many bytes; see RecurrentWeights. Unset (default), or `dtype`: not rounded.
  std::optional<DType> weight_dtype{};
  /// The generator of the initial values; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

using LSTMCellOptions = RecurrentModuleOptions<LSTMCell, false>;  ///< options of LSTMCell
using GRUCellOptions = RecurrentModuleOptions<GRUCell, false>;    ///< options of GRUCell
using RNNCellOptions = RecurrentModuleOptions<RNNCell, false>;    ///< options of RNNCell
using LSTMOptions = RecurrentModuleOptions<LSTMCell, true>;       ///< options of LSTM
using GRUOptions = RecurrentModuleOptions<GRUCell, true>;         ///< options of GRU
using RNNLayerOptions = RecurrentModuleOptions<RNNCell, true>;    ///< options of RNN

}  // namespace reel::nn
