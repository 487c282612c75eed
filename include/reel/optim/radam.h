#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

struct RAdamOptions {
  double learning_rate = 1e-3;
  /// β₁ and β₂, in [0, 1).
  double beta1 = 0.9, beta2 = 0.999;
  /// ε: keeps the division finite.
  double epsilon = 1e-8;
  /// λ: adds λ w to the gradient of w.
  double weight_decay = 0;
};

/// Adam that divides by the root only when enough steps have made it reliable; t counts the steps of a parameter from 1:
///
///     g = gradient + λ w             m and v as Adam
///     ρ∞ = 2 / (1 − β₂) − 1          ρ = ρ∞ − 2 t β₂ᵗ / (1 − β₂ᵗ)
///     r = √((ρ − 4) (ρ − 2) ρ∞ / ((ρ∞ − 4) (ρ∞ − 2) ρ))
///     w = w − rate / (1 − β₁ᵗ) · m · r √(1 − β₂ᵗ) / (√v + ε)     where ρ > 5
///     w = w − rate / (1 − β₁ᵗ) · m                               else
///
/// Gradients by rows are refused. Throws: Error for options out of range.
/// Source: Liu et al., On the variance of the adaptive learning rate and beyond (ICLR 2020), as PyTorch's RAdam computes
/// it.
class RAdam : public OptimiserWith<RAdamOptions> {
 public:
  explicit RAdam(std::vector<Tensor> parameters, RAdamOptions options = {}, Location where = Location::here());

 private:
  void check(const RAdamOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t) const override { return {"mean", "square"}; }
  detail::Descent descent(std::size_t group, Progress& progress, Device device) const override;
};

}  // namespace reel::optim
