#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

struct AdamWOptions {
  double learning_rate = 1e-3;
  /// β₁ and β₂, in [0, 1).
  double beta1 = 0.9, beta2 = 0.999;
  /// ε: keeps the division finite.
  double epsilon = 1e-8;
  /// λ: a step shrinks w by rate · λ beside what the gradient does.
  double weight_decay = 1e-2;
  /// Divides by the root of the largest v so far.
  bool amsgrad = false;
};

/// Adam with weight decay apart from the gradient:
///
///     w = (1 − rate · λ) w           then Adam's step with g = gradient
///
/// Gradients by rows are refused: rows without one would have to decay, too. Throws: Error for options out of range.
/// Source: Loshchilov and Hutter, Decoupled weight decay regularization (ICLR 2019), as PyTorch's AdamW computes it.
class AdamW : public OptimiserWith<AdamWOptions> {
 public:
  explicit AdamW(std::vector<Tensor> parameters, AdamWOptions options = {}, Location where = Location::here());

 private:
  void check(const AdamWOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t group) const override;
  detail::Descent descent(std::size_t group, Progress& progress, Device device) const override;
};

}  // namespace reel::optim
