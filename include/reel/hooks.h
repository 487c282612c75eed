#pragma once

#include <functional>
#include <span>

#include <reel/tensor.h>

namespace reel {

/// The gradients of one call of an op, as a hook on that op sees them.
struct OpGradients {
  const char* op;                   ///< the name of the op
  Location where;                   ///< the line of the call
  std::span<const Tensor> outputs;  ///< the gradient of each output; undefined where none flowed back
  std::span<Tensor> inputs;  ///< the gradient of each input, which may be replaced; undefined where none is needed
};

/// A hook on a tensor: called with its complete gradient; returns the gradient that replaces it, or an undefined tensor
/// to keep it.
using GradientHook = std::function<Tensor(const Tensor& gradient)>;
/// A hook on an op: called with the gradients of one call, of which those of the inputs may be replaced.
using OpHook = std::function<void(const OpGradients& gradients)>;

/// The gradient of a traced tensor h: ∂L/∂h, with the target L.
struct Traced {
  Location where;   ///< the line of the call of `Tape::trace` or `truncate`
  Tensor gradient;  ///< undefined if nothing flowed back to h
  bool truncated;   ///< true if traced by `truncate`: the gradient flowed no further
};

/// Returns h' = h, sharing its elements, where gradients end, as with `stop_gradient`: calling it every k steps
/// truncates back-propagation through time. While a tape records, h' is also a leaf of its own, traced by every open
/// tape, so that the truncated component can be computed: on a persistent tape, with g = ∂L/∂h' from `Tape::traced`,
/// `tape.gradient(h, w, {.seed = g})` is the component of ∂L/∂w that was truncated, up to the previous truncation, and
///   ∂L/∂w in full = ∂L/∂w truncated + Σ of the components over all paths to an earlier truncation.
/// A truncation inside the function of a checkpoint is not traced.
/// Throws: DTypeError unless floating.
/// Source: Williams & Peng 1990, An efficient gradient-based algorithm for on-line training of recurrent network
/// trajectories.
Tensor truncate(const Arg& h);

}  // namespace reel
