#pragma once

#include <span>

#include <reel/ops/recurrent.h>

namespace reel::detail {

/// The most children of `tree_lstm_step`.
constexpr std::size_t most_step_children = 3;

/// A node of a tree of LSTM cells with its product as one op: p (4 H) or (B, 4 H), the arguments of i, o, u and of every
/// child's f that do not depend on the children; W (N H, (3 + N) H); 1 to `most_step_children` children, each (B, H). All
/// of one dtype, f32 or f64, and one device. The operands are not checked.
LSTMState tree_lstm_step(const Tensor& p, const Tensor& W, std::span<const LSTMState> children, Location where);

}  // namespace reel::detail
