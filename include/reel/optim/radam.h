#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

/// Options of RAdam.
struct RAdamOptions {
  /// The learning rate; at least 0. Default 1e-3.
  double learning_rate = 1e-3;
  double beta1 = 0.9,  ///< β₁: the decay of the mean gradient, in [0, 1); default 0.9
      beta2 = 0.999;   ///< β₂: the decay of the mean squared gradient, in [0, 1); default 0.999
  /// ε, added to the denominator so that the division is finite; at least 0. Default 1e-8.
  double epsilon = 1e-8;
  /// λ: the weight decay, which adds λ w to the gradient of w; at least 0. Default 0.
  double weight_decay = 0;
};

/// Adam that divides by the root only when enough steps have made it reliable; t counts the steps of a parameter from
/// 1:
///
///     g = gradient + λ w             m and v as Adam
///     ρ∞ = 2 / (1 − β₂) − 1          ρ = ρ∞ − 2 t β₂ᵗ / (1 − β₂ᵗ)
///     r = √((ρ − 4) (ρ − 2) ρ∞ / ((ρ∞ − 4) (ρ∞ − 2) ρ))
///     w = w − rate / (1 − β₁ᵗ) · m · r √(1 − β₂ᵗ) / (√v + ε)     where ρ > 5
///     w = w − rate / (1 − β₁ᵗ) · m                               else
///
/// A gradient by rows is an error.
/// Throws: Error for options out of range.
/// Source: Liu et al., On the variance of the adaptive learning rate and beyond (ICLR 2020), as PyTorch's RAdam
/// computes it.
class RAdam : public OptimiserWith<RAdamOptions> {
 public:
  /// Optimises `parameters`, which are group 0.
  /// Throws: Error for options out of range, for no parameter, an undefined tensor, and one that is not a parameter or
  /// occurs twice; DTypeError unless f32 or f64; ShapeError unless contiguous.
  explicit RAdam(std::vector<Tensor> parameters, RAdamOptions options = {}, Location where = Location::here());

 private:
  void check(const RAdamOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t) const override { return {"mean", "square"}; }
  detail::UpdateStep update_step(std::size_t group, Progress& progress, Device device) const override;
};

}  // namespace reel::optim
