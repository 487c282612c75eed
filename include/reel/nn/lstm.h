#pragma once

#include <reel/nn/module.h>
#include <reel/ops/recurrent.h>

namespace reel::nn {

using reel::LSTMState;

struct LSTMCellOptions {
  /// Added to the forget gate's bias when it starts; 1 makes a new cell remember.
  /// Source: Jozefowicz et al., An empirical exploration of recurrent network architectures (ICML 2015).
  double forget_bias = 0;
  /// Above 0, h is that wide: h' = (o tanh(c')) W_r. Source: Sak et al., Long short-term memory recurrent neural network
  /// architectures for large scale acoustic modeling (2014).
  std::int64_t projection = 0;
  /// a = norm(x W_x) + norm(h W_h) + b and h' = o tanh(norm(c')), each norm with a scale of its own, the last with a shift.
  /// Source: Ba et al., Layer normalization (2016), supplement.
  bool layer_norm = false;
  /// Of W_x, of W_h and of the bias, each gate's block by itself; null: uniform on ±1/√H.
  Initialiser input_initialiser = {}, recurrent_initialiser = {}, bias_initialiser = {};
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// One step of a long short-term memory: the parameters of `lstm_cell`, whose equations stand in ops/recurrent.h.
/// x: (B, I), h: (B, P) and c: (B, H); P is H but for a projection. Everything starts uniform on ±1/√H, scales at 1, the
/// shift at 0.
/// Source: the initial values are those of PyTorch's LSTMCell, which has two biases where this has their sum.
struct LSTMCell : Module {
  Parameter W_x;      ///< (I, 4H)
  Parameter W_h;      ///< (P, 4H)
  Parameter bias;     ///< (4H)
  Parameter W_r;      ///< (H, P); undefined without a projection
  Parameter scale_x;  ///< (4H); undefined, as all below, without layer norms
  Parameter scale_h;  ///< (4H)
  Parameter scale_c;  ///< (H)
  Parameter shift_c;  ///< (H)

  /// Throws: ShapeError unless both sizes are positive, and the projection lies in [0, hidden_size).
  LSTMCell(std::int64_t input_size, std::int64_t hidden_size, LSTMCellOptions options = {},
           Location where = Location::here());
  LSTMCell(Module& parent, std::string_view name, std::int64_t input_size, std::int64_t hidden_size,
           LSTMCellOptions options = {}, Location where = Location::here())
      : LSTMCell(input_size, hidden_size, options, where) {
    join(parent, name, where);
  }

  std::int64_t input_size() const { return W_x.size(0); }
  std::int64_t hidden_size() const { return W_h.size(1) / 4; }
  /// Of h.
  std::int64_t output_size() const { return W_h.size(0); }
  /// Whether it is what `lstm` and `lstm_cell` do.
  bool is_plain() const { return !W_r.defined() && !scale_x.defined(); }
  /// For `lstm`, which runs all steps of a sequence at once, if the cell is plain.
  RecurrentWeights weights() const { return {W_x, W_h, bias}; }
  /// Zeros, in the cell's dtype.
  LSTMState initial_state(std::int64_t batch, Location where = Location::here()) const;

  /// The next state: `step(project(x), state)`. Throws: ShapeError unless x is (B, I), h (B, P) and c (B, H).
  LSTMState operator()(const Arg& x, const LSTMState& state) const;
  /// x W_x + b: the inputs' part of a, of one step (B, I) → (B, 4H), or of all at once (T, B, I) → (T, B, 4H), which is
  /// one large product in place of T small ones. Throws: ShapeError unless x ends in an axis of size I.
  Tensor project(const Arg& x) const;
  /// The next state from the inputs' part of a, (B, 4H), which the cell's hooks see in place of x.
  /// Throws: ShapeError unless sizes fit.
  LSTMState step(const Arg& projected, const LSTMState& state) const;

 private:
  // step, not as a call of its own.
  LSTMState advance(const Tensor& projected, const LSTMState& state) const;
};

}  // namespace reel::nn
