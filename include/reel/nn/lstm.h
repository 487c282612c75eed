#pragma once

#include <reel/nn/module.h>

namespace reel::nn {

/// What an LSTM carries from step to step.
struct LSTMState {
  Tensor h;  ///< (B, H): its output
  Tensor c;  ///< (B, H): its memory
};

/// The same values, cut off from the steps that led to them, to carry into the next stretch of a long sequence.
LSTMState stop_gradient(const LSTMState& state, Location where = Location::here());

struct LSTMCellOptions {
  /// Added to the forget gate's bias when it starts; 1 makes a new cell remember.
  /// Source: Jozefowicz et al., An empirical exploration of recurrent network architectures (ICML 2015).
  double forget_bias = 0;
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// One step of a long short-term memory.
///
///     a  = x W_x + b + h W_h         a (B, 4H) holds, in this order, the gates' arguments a_i, a_f, a_g, a_o
///     i  = σ(a_i)                    how much is written
///     f  = σ(a_f)                    how much is kept
///     g  = tanh(a_g)                 what is written
///     o  = σ(a_o)                    how much is shown
///     c' = f c + i g
///     h' = o tanh(c')
///
/// x: (B, I), h and c: (B, H). Everything starts uniform on ±1/√H.
/// Source: Hochreiter and Schmidhuber, Long short-term memory (1997), with the forget gate of Gers et al. (2000); gate
/// order and initial values are those of PyTorch's LSTMCell, which has two biases where this has their sum.
struct LSTMCell : Module {
  Tensor W_x;   ///< (I, 4H)
  Tensor W_h;   ///< (H, 4H)
  Tensor bias;  ///< (4H)

  /// Throws: ShapeError unless both sizes are positive.
  LSTMCell(std::int64_t input_size, std::int64_t hidden_size, LSTMCellOptions options = {},
           Location where = Location::here());
  LSTMCell(Module& parent, std::string_view name, std::int64_t input_size, std::int64_t hidden_size,
           LSTMCellOptions options = {}, Location where = Location::here());

  std::int64_t input_size() const { return W_x.size(0); }
  std::int64_t hidden_size() const { return W_h.size(0); }
  /// Zeros, in the cell's dtype.
  LSTMState initial_state(std::int64_t batch, Location where = Location::here()) const;

  /// The next state: `step(project(x), state)`. Throws: ShapeError unless x is (B, I) and h and c are (B, H).
  LSTMState operator()(const Arg& x, const LSTMState& state) const;
  /// x W_x + b: the inputs' part of a, of one step (B, I) → (B, 4H), or of all at once (T, B, I) → (T, B, 4H), which is
  /// one large product in place of T small ones. Throws: ShapeError unless x ends in an axis of size I.
  Tensor project(const Arg& x) const;
  /// The next state from the inputs' part of a, (B, 4H). Throws: ShapeError unless sizes fit.
  LSTMState step(const Arg& projected, const LSTMState& state) const;

 private:
  void initialise(std::int64_t input_size, std::int64_t hidden_size, const LSTMCellOptions& options, Location where);
};

}  // namespace reel::nn
