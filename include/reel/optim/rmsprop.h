#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

/// Options of RMSprop.
struct RMSpropOptions {
  /// The learning rate; at least 0. Default 1e-2.
  double learning_rate = 1e-2;
  /// α: the decay of the mean squared gradient, in [0, 1). Default 0.99.
  double alpha = 0.99;
  /// ε, added to the denominator so that the division is finite; at least 0. Default 1e-8.
  double epsilon = 1e-8;
  /// λ: the weight decay, which adds λ w to the gradient of w; at least 0. Default 0.
  double weight_decay = 0;
  /// μ: the momentum, in [0, 1). Default 0.
  double momentum = 0;
  /// Whether to divide by the root of the variance of the gradient instead of its mean square. Default false.
  bool centred = false;
};

/// RMSprop: gradient descent that divides by the root of the mean squared gradient:
///
///     g = gradient + λ w
///     s = α s + (1 − α) g²           s, m and v start at 0
///     m = α m + (1 − α) g            with `centred`; else m stays 0
///     v = μ v + g / (√(s − m²) + ε)
///     w = w − rate · v
///
/// A variance that rounding makes negative is treated as 0. A gradient by rows is an error.
/// Throws: Error for options out of range.
/// Source: Hinton, Neural networks for machine learning, lecture 6e (2012); centred: Graves, Generating sequences with
/// recurrent neural networks (2013), as PyTorch's RMSprop computes it.
class RMSprop : public OptimiserWith<RMSpropOptions> {
 public:
  /// Optimises `parameters`, which are group 0.
  /// Throws: Error for options out of range, for no parameter, an undefined tensor, and one that is not a parameter or
  /// occurs twice; DTypeError unless f32 or f64; ShapeError unless contiguous.
  explicit RMSprop(std::vector<Tensor> parameters, RMSpropOptions options = {}, Location where = Location::here());

 private:
  void check(const RMSpropOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t group) const override;
  detail::UpdateStep update_step(std::size_t group, Progress& progress, Device device) const override;
};

}  // namespace reel::optim
