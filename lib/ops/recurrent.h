#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <reel/ops/recurrent.h>

#include "../core/kernels/recurrent.h"
#include "../core/op_error.h"
#include "packing.h"

namespace reel::detail {

/// Throws: Error for an undefined tensor; DTypeError, DeviceError unless it goes with x; ShapeError unless it has the
/// shape, which is that of `what`.
void check_fits_input(const char* op, const char* what, const Tensor& tensor, const Shape& shape, const Tensor& x,
                      Location where);

/// The hidden size. Throws as check_fits_input, unless the weights take inputs of `width` elements.
std::int64_t check_weights(const char* op, RecurrentCell cell, const RecurrentWeights& weights, std::int64_t width,
                           const Tensor& x, Location where);

/// Of gru, from those of p and q.
Tensor gru_bias_gradient(const Tensor& dp, const Tensor& dq);

/// Halves as f32.
Tensor widened(const Tensor& x);

/// The same within an autocast scope, where recurrent ops hold their state in f32; elsewhere as they are.
RecurrentWeights suited(const RecurrentWeights& weights, Location where);
/// The bias, or zeros in its place.
Tensor bias_of(RecurrentCell cell, const RecurrentWeights& weights);

/// A step from p, q and b, in f32 or f64: what is carried on is h, and c for lstm. `before` is c of lstm, h of gru.
LSTMState run_cell(RecurrentCell cell, const Tensor& p, const Tensor& q, const Tensor& before, const Tensor& bias,
                   Location where);

struct NetAttributes {
  std::int64_t cell_number, reverse;
  RecurrentCell cell() const { return static_cast<RecurrentCell>(cell_number); }
};

/// What the op of a net over packed rows takes; c of lstm alone.
enum NetInput : std::uint8_t { in_x, in_W_x, in_W_h, in_bias, in_h, in_counts, in_c };

/// The net from differentiable ops, step by step.
NetOutput composed_net(std::span<const Tensor> in, NetAttributes attributes, Location where);

/// The net by a device that works it out as a whole; nothing where it does not. c may be undefined.
std::optional<NetOutput> run_whole_net(const std::array<Tensor, 7>& in, NetAttributes attributes, Location where);

/// A net over packed rows, worked out in f32 or f64, where counts says how many sequences have each step; the state is that of the
/// sequences in the order of their lengths.
NetOutput run_packed_net(RecurrentCell cell, bool reverse, const Tensor& rows, const LSTMState& before,
                         const Tensor& counts, const RecurrentWeights& weights, Location where);

}  // namespace reel::detail
