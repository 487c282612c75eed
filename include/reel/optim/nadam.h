#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

struct NAdamOptions {
  double learning_rate = 2e-3;
  /// β₁ and β₂, in [0, 1).
  double beta1 = 0.9, beta2 = 0.999;
  /// ε: keeps the division finite.
  double epsilon = 1e-8;
  /// λ: adds λ w to the gradient of w.
  double weight_decay = 0;
  /// ψ: how fast the momentum μ grows to β₁.
  double momentum_decay = 4e-3;
};

/// Adam with Nesterov's momentum; t counts the steps of a parameter from 1:
///
///     g = gradient + λ w             m and v as Adam
///     μₜ = β₁ (1 − 0.96^(t ψ) / 2)   P = μ₁ μ₂ … μₜ
///     w = w − rate · ((1 − μₜ) / (1 − P) · g + μₜ₊₁ / (1 − P μₜ₊₁) · m) / (√v / √(1 − β₂ᵗ) + ε)
///
/// Gradients by rows are refused. Throws: Error for options out of range.
/// Source: Dozat, Incorporating Nesterov momentum into Adam (ICLR workshop 2016), as PyTorch's NAdam computes it.
class NAdam : public OptimiserWith<NAdamOptions> {
 public:
  explicit NAdam(std::vector<Tensor> parameters, NAdamOptions options = {}, Location where = Location::here());

 private:
  void check(const NAdamOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t) const override { return {"mean", "square"}; }
  detail::Descent descent(std::size_t group, Progress& progress, Device device) const override;
  bool keeps_product() const override { return true; }
};

}  // namespace reel::optim
