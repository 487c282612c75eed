#pragma once

#include <functional>
#include <span>

#include <reel/tensor.h>

namespace reel {

/// The gradient of one call of an op, as a hook on its kind sees it.
struct OpGradients {
  const char* op;
  Location where;                   ///< the line of the call
  std::span<const Tensor> outputs;  ///< what flowed back to each output; undefined where nothing did
  std::span<Tensor> inputs;         ///< what each input is given, to be replaced at will; undefined where nobody asks
};

/// Called with a complete gradient; returns what replaces it, or an undefined tensor to keep it.
using GradientHook = std::function<Tensor(const Tensor& gradient)>;
using OpHook = std::function<void(const OpGradients& gradients)>;

/// The gradient of a traced tensor: ∂L/∂h, with the target L.
struct Traced {
  Location where;   ///< of the call of `Tape::trace` or `truncate`
  Tensor gradient;  ///< undefined if nothing flowed back to h
  bool truncated;   ///< by `truncate`: it went no further
};

/// h' = h, sharing its elements, where gradients end, as with `stop_gradient`: calling it every k steps truncates
/// back-propagation through time. While a tape records, h' is besides a leaf of its own, and traced by every open tape,
/// so that what was cut off can be had: on a persistent tape, with g = ∂L/∂h' from `Tape::traced`,
/// `tape.gradient(h, w, {.seed = g})` is the component of ∂L/∂w that was cut off, up to the cut before, and
///   ∂L/∂w in full = ∂L/∂w truncated + Σ over all ways to an earlier cut of their components.
/// What is cut inside the function of a checkpoint is not traced.
/// Throws: DTypeError unless floating.
/// Source: Williams & Peng 1990, An efficient gradient-based algorithm for on-line training of recurrent network
/// trajectories.
Tensor truncate(const Arg& h);

}  // namespace reel
