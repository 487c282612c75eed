#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

/// Options of Adamax.
struct AdamaxOptions {
  /// The learning rate; at least 0. Default 2e-3.
  double learning_rate = 2e-3;
  double beta1 = 0.9,  ///< β₁: the decay of the mean gradient, in [0, 1); default 0.9
      beta2 = 0.999;   ///< β₂: the decay of the largest gradient, in [0, 1); default 0.999
  /// ε, added to the denominator so that the division is finite; at least 0. Default 1e-8.
  double epsilon = 1e-8;
  /// λ: the weight decay, which adds λ w to the gradient of w; at least 0. Default 0.
  double weight_decay = 0;
};

/// Adam with the largest gradient in place of the mean square; t counts the steps of a parameter from 1:
///
///     g = gradient + λ w
///     m = β₁ m + (1 − β₁) g          m and u start at 0
///     u = max(β₂ u, |g| + ε)
///     w = w − rate / (1 − β₁ᵗ) · m / u
///
/// A gradient by rows is an error.
/// Throws: Error for options out of range.
/// Source: Kingma and Ba, Adam: a method for stochastic optimization (ICLR 2015), section 7.1, as PyTorch's Adamax
/// computes it.
class Adamax : public OptimiserWith<AdamaxOptions> {
 public:
  /// Optimises `parameters`, which are group 0.
  /// Throws: Error for options out of range, for no parameter, an undefined tensor, and one that is not a parameter or
  /// occurs twice; DTypeError unless f32 or f64; ShapeError unless contiguous.
  explicit Adamax(std::vector<Tensor> parameters, AdamaxOptions options = {}, Location where = Location::here());

 private:
  void check(const AdamaxOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t) const override { return {"mean", "largest"}; }
  detail::UpdateStep update_step(std::size_t group, Progress& progress, Device device) const override;
};

}  // namespace reel::optim
