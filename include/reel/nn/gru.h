#pragma once

#include <reel/nn/module.h>
#include <reel/ops/recurrent.h>

namespace reel::nn {

struct GRUCellOptions {
  /// Of W_x, of W_h and of the bias, each gate's block by itself; null: uniform on ±1/√H.
  Initialiser input_initialiser = {}, recurrent_initialiser = {}, bias_initialiser = {};
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// One step of a gated recurrent unit: the parameters of `gru_cell`, whose equations stand in ops/recurrent.h.
/// x: (B, I), h: (B, H). Everything starts uniform on ±1/√H.
/// Source: the initial values are those of PyTorch's GRUCell, which has two biases for each gate.
struct GRUCell : Module {
  Parameter W_x;   ///< (I, 3H)
  Parameter W_h;   ///< (H, 3H)
  Parameter bias;  ///< (4H)

  /// Throws: ShapeError unless both sizes are positive.
  GRUCell(std::int64_t input_size, std::int64_t hidden_size, GRUCellOptions options = {},
          Location where = Location::here());
  GRUCell(Module& parent, std::string_view name, std::int64_t input_size, std::int64_t hidden_size,
          GRUCellOptions options = {}, Location where = Location::here())
      : GRUCell(input_size, hidden_size, options, where) {
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
