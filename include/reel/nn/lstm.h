#pragma once

#include <reel/nn/module.h>
#include <reel/ops/recurrent.h>

namespace reel::nn {

using reel::LSTMState;

struct LSTMCellOptions {
  /// Added to the forget gate's bias when it starts; 1 makes a new cell remember.
  /// Source: Jozefowicz et al., An empirical exploration of recurrent network architectures (ICML 2015).
  double forget_bias = 0;
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// One step of a long short-term memory: the parameters of `lstm_cell`, whose equations stand in ops/recurrent.h.
/// x: (B, I), h and c: (B, H). Everything starts uniform on ±1/√H.
/// Source: the initial values are those of PyTorch's LSTMCell, which has two biases where this has their sum.
struct LSTMCell : Module {
  Parameter W_x;   ///< (I, 4H)
  Parameter W_h;   ///< (H, 4H)
  Parameter bias;  ///< (4H)

  /// Throws: ShapeError unless both sizes are positive.
  LSTMCell(std::int64_t input_size, std::int64_t hidden_size, LSTMCellOptions options = {},
           Location where = Location::here());
  LSTMCell(Module& parent, std::string_view name, std::int64_t input_size, std::int64_t hidden_size,
           LSTMCellOptions options = {}, Location where = Location::here())
      : LSTMCell(input_size, hidden_size, options, where) {
    join(parent, name, where);
  }

  std::int64_t input_size() const { return W_x.size(0); }
  std::int64_t hidden_size() const { return W_h.size(0); }
  /// For `lstm`, which runs all steps of a sequence at once.
  RecurrentWeights weights() const { return {W_x, W_h, bias}; }
  /// Zeros, in the cell's dtype.
  LSTMState initial_state(std::int64_t batch, Location where = Location::here()) const;

  /// The next state: `step(project(x), state)`. Throws: ShapeError unless x is (B, I) and h and c are (B, H).
  LSTMState operator()(const Arg& x, const LSTMState& state) const;
  /// x W_x + b: the inputs' part of a, of one step (B, I) → (B, 4H), or of all at once (T, B, I) → (T, B, 4H), which is
  /// one large product in place of T small ones. Throws: ShapeError unless x ends in an axis of size I.
  Tensor project(const Arg& x) const;
  /// The next state from the inputs' part of a, (B, 4H). Throws: ShapeError unless sizes fit.
  LSTMState step(const Arg& projected, const LSTMState& state) const;
};

}  // namespace reel::nn
