#pragma once

#include <initializer_list>
#include <span>

#include <reel/ops/recurrent.h>

namespace reel::detail {

/// Returns true if a step of these operands can run as `lstm_step`: all are f32, or all f64, of one device, outside of
/// an autocast scope.
bool can_run_lstm_step(std::initializer_list<const Tensor*> tensors);

/// One step of an LSTM with its products as one op: p (B, 4 H), h (B, P), c (B, H), W_h (P, 4 H), where p has the bias;
/// or x (B, I), h, c, W_h, W_x (I, 4 H) and, unless there is none, bias (4 H). The weights are rounded to `rounding`,
/// bf16 or f16 for operands of f32; f32: not rounded. The operands are not checked.
LSTMState lstm_step(std::span<const Tensor* const> operands, DType rounding, Location where);

}  // namespace reel::detail
