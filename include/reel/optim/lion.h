#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

struct LionOptions {
  double learning_rate = 1e-4;
  /// β₁: how much of the mean gradient the direction of a step has, in [0, 1).
  double beta1 = 0.9;
  /// β₂: how much of the mean gradient a step keeps, in [0, 1).
  double beta2 = 0.99;
  /// λ: a step shrinks w by rate · λ beside what the gradient does.
  double weight_decay = 0;
};

/// Steps of one size, in the direction of the sign:
///
///     c = β₁ m + (1 − β₁) gradient   m starts at 0
///     w = w − rate · (sign(c) + λ w)
///     m = β₂ m + (1 − β₂) gradient
///
/// Gradients by rows are refused. Throws: Error for options out of range.
/// Source: Chen et al., Symbolic discovery of optimization algorithms (NeurIPS 2023), algorithm 2.
class Lion : public OptimiserWith<LionOptions> {
 public:
  explicit Lion(std::vector<Tensor> parameters, LionOptions options = {}, Location where = Location::here());

 private:
  void check(const LionOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t) const override { return {"mean"}; }
  detail::Descent descent(std::size_t group, Progress& progress, Device device) const override;
};

}  // namespace reel::optim
