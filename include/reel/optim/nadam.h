#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

/// Options of NAdam.
struct NAdamOptions {
  /// The learning rate; at least 0. Default 2e-3.
  double learning_rate = 2e-3;
  double beta1 = 0.9,  ///< β₁: the decay of the mean gradient, in [0, 1); default 0.9
      beta2 = 0.999;   ///< β₂: the decay of the mean squared gradient, in [0, 1); default 0.999
  /// ε, added to the denominator so that the division is finite; at least 0. Default 1e-8.
  double epsilon = 1e-8;
  /// λ: the weight decay, which adds λ w to the gradient of w; at least 0. Default 0.
  double weight_decay = 0;
  /// ψ: how fast the momentum μ grows to β₁. Default 4e-3.
  double momentum_decay = 4e-3;
};

/// Adam with Nesterov's momentum; t counts the steps of a parameter from 1:
///
///     g = gradient + λ w             m and v as Adam
///     μₜ = β₁ (1 − 0.96^(t ψ) / 2)   P = μ₁ μ₂ … μₜ
///     w = w − rate · ((1 − μₜ) / (1 − P) · g + μₜ₊₁ / (1 − P μₜ₊₁) · m) / (√v / √(1 − β₂ᵗ) + ε)
///
/// A gradient by rows is an error.
/// Throws: Error for options out of range.
/// Source: Dozat, Incorporating Nesterov momentum into Adam (ICLR workshop 2016), as PyTorch's NAdam computes it.
class NAdam : public OptimiserWith<NAdamOptions> {
 public:
  /// Optimises `parameters`, which are group 0.
  /// Throws: Error for options out of range, for no parameter, an undefined tensor, and one that is not a parameter or
  /// occurs twice; DTypeError unless f32 or f64; ShapeError unless contiguous.
  explicit NAdam(std::vector<Tensor> parameters, NAdamOptions options = {}, Location where = Location::here());

 private:
  void check(const NAdamOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t) const override { return {"mean", "square"}; }
  detail::UpdateStep update_step(std::size_t group, Progress& progress, Device device) const override;
  bool keeps_product() const override { return true; }
};

}  // namespace reel::optim
