#pragma once

#include <span>

#include <reel/ops/recurrent.h>

namespace reel::detail {

/// The node that `tree_lstm_cell(p, children, W_h)` describes, of operands that have been checked: one op for up to 3
/// children in f32 or f64 outside of an autocast scope, elsewhere composed.
LSTMState tree_lstm_node(const Tensor& p, std::span<const LSTMState> children, const Tensor& W_h, Location where);

}  // namespace reel::detail
