#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <reel/ops/recurrent.h>

#include "../../core/op.h"
#include "../../core/op_error.h"
#include "../../kernels/kernel_table.h"
#include "../../kernels/recurrent.h"
#include "packing.h"
#include "weight_product.h"

namespace reel::detail {

/// The kernels of the device that a call runs on.
inline const RecurrentKernels& recurrent_kernels(const Call& call) { return *kernels(call.output().device).recurrent; }

/// Throws: Error for an undefined tensor; DTypeError, DeviceError unless its dtype and device match x; ShapeError
/// unless it has the shape, which is described as that of `what`.
void check_fits_input(const char* op, const char* what, const Tensor& tensor, const Shape& shape, const Tensor& x,
                      Location where);

/// Returns the hidden size. Throws: as check_fits_input, unless the weights match inputs of `width` elements; as
/// rounding_of.
std::int64_t check_weights(const char* op, RecurrentCell cell, const RecurrentWeights& weights, std::int64_t width,
                           const Tensor& x, Location where);

/// The gradients of lstm_cell's p and q, which are equal, and of c.
struct LSTMGradients {
  Tensor da, dc;
};
/// The gradients of an op with the outputs of lstm_cell, h', the gates and c', whose input 2 is c.
LSTMGradients lstm_gradients(Gradient& g);

/// The gradients of the gates' arguments of a tree's node, and of its children's memories; the remaining ones are
/// undefined.
struct NodeGradients {
  Tensor da, dc[most_children];
};
/// The gradients of an op with the outputs of tree_lstm_cell, h', the gates and c'; `memories`: those of the children.
NodeGradients node_gradients(Gradient& g, std::span<const Tensor* const> memories);

/// The gradient of gru's bias from those of p and q.
Tensor gru_bias_gradient(const Tensor& dp, const Tensor& dq);

/// The weights, with halves converted to f32 within an autocast scope, where recurrent ops hold their state in f32;
/// elsewhere unchanged.
RecurrentWeights autocast_operand(const RecurrentWeights& weights, Location where);
/// The bias, or zeros if there is none.
Tensor bias_of(RecurrentCell cell, const RecurrentWeights& weights);

/// One step from p, q and b, in f32 or f64. Returns the next state: h, and c for lstm. `before` is c of lstm, h of gru.
LSTMState run_cell(RecurrentCell cell, const Tensor& p, const Tensor& q, const Tensor& before, const Tensor& bias,
                   Location where);

/// The activation of a plain recurrent cell.
struct CellActivationAttributes {
  std::int64_t activation;
  RecurrentCell cell() const {
    return activation == static_cast<std::int64_t>(RNNActivation::relu) ? RecurrentCell::rnn_relu
                                                                        : RecurrentCell::rnn_tanh;
  }
};

/// The cell of a net, whether it runs from the last step to the first, and how its weights are rounded.
struct NetAttributes {
  std::int64_t cell_index, reverse;
  WeightAttributes weights = {};
  RecurrentCell cell() const { return static_cast<RecurrentCell>(cell_index); }
  /// The dtype to which the weights are rounded; f32: not rounded.
  DType rounding() const { return weights.rounding(); }
};

/// The inputs of the op of a net over packed rows; c for lstm only.
enum NetInput : std::uint8_t { in_x, in_W_x, in_W_h, in_bias, in_h, in_counts, in_c };

/// Runs the net step by step with differentiable ops.
NetOutput composed_net(std::span<const Tensor> in, NetAttributes attributes, Location where);

/// Runs the net as a fused layer on a device that supports it; empty otherwise. c may be undefined. `given`: the weights
/// from which those among the inputs were made, or which they are.
std::optional<NetOutput> run_fused_net(const std::array<Tensor, 7>& in, const RecurrentWeights& given,
                                       NetAttributes net, Location where);

/// Runs a net over packed rows in f32 or f64; `counts` holds the number of sequences that have each step, and states
/// are in the order of the sequences' lengths.
NetOutput run_packed_net(RecurrentCell cell, bool reverse, const Tensor& x, const LSTMState& before,
                         const Tensor& counts, const RecurrentWeights& weights, Location where);

}  // namespace reel::detail
