#pragma once

#include <optional>

#include <reel/nn/module.h>
#include <reel/nn/recurrent/options.h>
#include <reel/ops/recurrent.h>

namespace reel::nn {

/// The state of an LSTM, carried from step to step.
using reel::LSTMState;

/// One step of a long short-term memory: `lstm_cell`, whose equations are in ops/recurrent.h, with parameters. x: (B,
/// I), h: (B, P) and c: (B, H); P is H unless there is a projection. Parameters are initialised uniformly on ±1/√H,
/// scales with 1, the shift with 0.
/// Source: the initial values are those of PyTorch's LSTMCell, which has two biases where this has their sum.
struct LSTMCell : Module {
  Parameter W_x;                      ///< (I, 4H)
  Parameter W_h;                      ///< (P, 4H)
  Parameter bias;                     ///< (4H)
  Parameter W_r;                      ///< (H, P); undefined without a projection
  Parameter scale_x;                  ///< (4H); undefined without layer norms
  Parameter scale_h;                  ///< (4H); undefined without layer norms
  Parameter scale_c;                  ///< (H); undefined without layer norms
  Parameter shift_c;                  ///< (H); undefined without layer norms
  std::optional<DType> weight_dtype;  ///< to which W_x and W_h are rounded in products; unset: they are not

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless both sizes are positive and the projection is in [0, hidden_size); DTypeError for a
  /// `weight_dtype` other than bf16 and f16, or with parameters that are not f32.
  LSTMCell(std::int64_t input_size, std::int64_t hidden_size, LSTMCellOptions options = {},
           Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless both sizes are
  /// positive and the projection is in [0, hidden_size); DTypeError for a `weight_dtype` other than bf16 and f16, or
  /// with parameters that are not f32.
  LSTMCell(Module& parent, std::string_view name, std::int64_t input_size, std::int64_t hidden_size,
           LSTMCellOptions options = {}, Location where = Location::here())
      : LSTMCell(input_size, hidden_size, options, where) {
    join(parent, name, where);
  }

  /// The width I of the input.
  std::int64_t input_size() const { return W_x.size(0); }
  /// The width H of the state.
  std::int64_t hidden_size() const { return W_h.size(1) / 4; }
  /// The width P of h.
  std::int64_t output_size() const { return W_h.size(0); }
  /// True if the cell has neither projection nor layer normalisation, so that `weights()` can be passed to `lstm`.
  bool is_plain() const { return !W_r.defined() && !scale_x.defined(); }
  /// The parameters of a plain cell, for `lstm`, which runs all steps of a sequence at once.
  RecurrentWeights weights() const { return {W_x, W_h, bias, weight_dtype}; }
  /// A state of zeros, h (batch, P) and c (batch, H), in the cell's dtype.
  LSTMState initial_state(std::int64_t batch, Location where = Location::here()) const;

  /// The next state: `step(project(x), state)`.
  /// Throws: ShapeError unless x is (B, I), h (B, P) and c (B, H); DTypeError unless they have the dtype of the
  /// weights; Error for an undefined one.
  LSTMState operator()(const Arg& x, const LSTMState& state) const;
  /// x W_x + b: the inputs' part of a, for one step (B, I) → (B, 4H), or for all at once (T, B, I) → (T, B, 4H), which
  /// is one large product instead of T small ones.
  /// Throws: ShapeError unless x is (B, I) or (T, B, I).
  Tensor project(const Arg& x) const;
  /// The next state from the inputs' part of a, (B, 4H), which the cell's hooks see in place of x.
  /// Throws: ShapeError unless it is (B, 4H), h (B, P) and c (B, H); DTypeError unless they have the dtype of the
  /// weights; Error for an undefined one.
  LSTMState step(const Arg& projected, const LSTMState& state) const;

 private:
  // step, not as a call of its own.
  LSTMState advance(const Tensor& projected, const LSTMState& state) const;
  // Whether a step from an input of `width` columns can be one op.
  bool fits_step(const Tensor& input, std::int64_t width, const LSTMState& state) const;
  LSTMState with_projection(LSTMState next) const;
  // The dtype to which the weights are rounded; f32: not rounded.
  DType rounding() const;
  // x times a weight, which may be rounded.
  Tensor product(const Tensor& x, const Tensor& weight) const;
};

}  // namespace reel::nn
