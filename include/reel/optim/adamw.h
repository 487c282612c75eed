#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

/// Options of AdamW.
struct AdamWOptions {
  /// The learning rate; at least 0. Default 1e-3.
  double learning_rate = 1e-3;
  double beta1 = 0.9,  ///< β₁: the decay of the mean gradient, in [0, 1); default 0.9
      beta2 = 0.999;   ///< β₂: the decay of the mean squared gradient, in [0, 1); default 0.999
  /// ε, added to the denominator so that the division is finite; at least 0. Default 1e-8.
  double epsilon = 1e-8;
  /// λ: the weight decay apart from the gradient: a step also multiplies w by 1 − rate · λ; at least 0. Default 1e-2.
  double weight_decay = 1e-2;
  /// Whether to divide by the root of the largest v so far. Default false.
  bool amsgrad = false;
};

/// Adam with weight decay apart from the gradient:
///
///     w = (1 − rate · λ) w           then Adam's step with g = gradient
///
/// A gradient by rows is an error: rows without one would have to decay, too.
/// Throws: Error for options out of range.
/// Source: Loshchilov and Hutter, Decoupled weight decay regularization (ICLR 2019), as PyTorch's AdamW computes it.
class AdamW : public OptimiserWith<AdamWOptions> {
 public:
  /// Optimises `parameters`, which are group 0.
  /// Throws: Error for options out of range, for no parameter, an undefined tensor, and one that is not a parameter or
  /// occurs twice; DTypeError unless f32 or f64; ShapeError unless contiguous.
  explicit AdamW(std::vector<Tensor> parameters, AdamWOptions options = {}, Location where = Location::here());

 private:
  void check(const AdamWOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t group) const override;
  detail::UpdateStep update_step(std::size_t group, Progress& progress, Device device) const override;
};

}  // namespace reel::optim
