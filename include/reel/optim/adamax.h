#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

struct AdamaxOptions {
  double learning_rate = 2e-3;
  /// β₁ and β₂, in [0, 1).
  double beta1 = 0.9, beta2 = 0.999;
  /// ε: keeps the division finite.
  double epsilon = 1e-8;
  /// λ: adds λ w to the gradient of w.
  double weight_decay = 0;
};

/// Adam with the largest gradient in place of the mean square; t counts the steps of a parameter from 1:
///
///     g = gradient + λ w
///     m = β₁ m + (1 − β₁) g          m and u start at 0
///     u = max(β₂ u, |g| + ε)
///     w = w − rate / (1 − β₁ᵗ) · m / u
///
/// Gradients by rows are refused. Throws: Error for options out of range.
/// Source: Kingma and Ba, Adam: a method for stochastic optimization (ICLR 2015), section 7.1, as PyTorch's Adamax
/// computes it.
class Adamax : public OptimiserWith<AdamaxOptions> {
 public:
  explicit Adamax(std::vector<Tensor> parameters, AdamaxOptions options = {}, Location where = Location::here());

 private:
  void check(const AdamaxOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t) const override { return {"mean", "largest"}; }
  detail::Descent descent(std::size_t group, Progress& progress, Device device) const override;
};

}  // namespace reel::optim
