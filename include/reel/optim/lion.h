#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

/// Options of Lion.
struct LionOptions {
  /// The learning rate; at least 0. Default 1e-4.
  double learning_rate = 1e-4;
  /// β₁: the weight of the mean gradient in the direction of a step, in [0, 1). Default 0.9.
  double beta1 = 0.9;
  /// β₂: the decay of the mean gradient, in [0, 1). Default 0.99.
  double beta2 = 0.99;
  /// λ: the weight decay apart from the gradient: a step also multiplies w by 1 − rate · λ; at least 0. Default 0.
  double weight_decay = 0;
};

/// Lion: steps of one size, in the direction of the sign of an averaged gradient:
///
///     c = β₁ m + (1 − β₁) gradient   m starts at 0
///     w = w − rate · (sign(c) + λ w)
///     m = β₂ m + (1 − β₂) gradient
///
/// A gradient by rows is an error.
/// Throws: Error for options out of range.
/// Source: Chen et al., Symbolic discovery of optimization algorithms (NeurIPS 2023), algorithm 2.
class Lion : public OptimiserWith<LionOptions> {
 public:
  /// Optimises `parameters`, which are group 0.
  /// Throws: Error for options out of range, for no parameter, an undefined tensor, and one that is not a parameter or
  /// occurs twice; DTypeError unless f32 or f64; ShapeError unless contiguous.
  explicit Lion(std::vector<Tensor> parameters, LionOptions options = {}, Location where = Location::here());

 private:
  void check(const LionOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t) const override { return {"mean"}; }
  detail::UpdateStep update_step(std::size_t group, Progress& progress, Device device) const override;
};

}  // namespace reel::optim
