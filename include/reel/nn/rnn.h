#pragma once

#include <reel/nn/module.h>
#include <reel/ops/recurrent.h>

namespace reel::nn {

struct RNNCellOptions {
  RNNActivation activation = RNNActivation::tanh;
  /// Of W_x, of W_h and of the bias; null: uniform on ±1/√H.
  Initialiser input_initialiser = {}, recurrent_initialiser = {}, bias_initialiser = {};
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// One step of a plain recurrent net: the parameters of `rnn_cell`, h' = act(x W_x + h W_h + b).
/// x: (B, I), h: (B, H). Everything starts uniform on ±1/√H.
/// Source: the initial values are those of PyTorch's RNNCell, which has two biases where this has their sum.
struct RNNCell : Module {
  Parameter W_x;   ///< (I, H)
  Parameter W_h;   ///< (H, H)
  Parameter bias;  ///< (H)
  RNNActivation activation;

  /// Throws: ShapeError unless both sizes are positive.
  RNNCell(std::int64_t input_size, std::int64_t hidden_size, RNNCellOptions options = {},
          Location where = Location::here());
  RNNCell(Module& parent, std::string_view name, std::int64_t input_size, std::int64_t hidden_size,
          RNNCellOptions options = {}, Location where = Location::here())
      : RNNCell(input_size, hidden_size, options, where) {
    join(parent, name, where);
  }

  std::int64_t input_size() const { return W_x.size(0); }
  std::int64_t hidden_size() const { return W_h.size(0); }
  RecurrentWeights weights() const { return {W_x, W_h, bias}; }
  /// Zeros, in the cell's dtype.
  Tensor initial_state(std::int64_t batch, Location where = Location::here()) const;

  /// The next h. Throws: ShapeError unless x is (B, I) and h (B, H).
  Tensor operator()(const Arg& x, const Tensor& h) const;
};

}  // namespace reel::nn
