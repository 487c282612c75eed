#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

struct RMSpropOptions {
  double learning_rate = 1e-2;
  /// α: how much of the mean squared gradient a step keeps, in [0, 1).
  double alpha = 0.99;
  /// ε: keeps the division finite.
  double epsilon = 1e-8;
  /// λ: adds λ w to the gradient of w.
  double weight_decay = 0;
  /// μ, in [0, 1).
  double momentum = 0;
  /// Divides by the root of the variance of the gradient instead of its mean square.
  bool centred = false;
};

/// Descent that divides by the root of the mean squared gradient:
///
///     g = gradient + λ w
///     s = α s + (1 − α) g²           s, m and v start at 0
///     m = α m + (1 − α) g            with `centred`; else m stays 0
///     v = μ v + g / (√(s − m²) + ε)
///     w = w − rate · v
///
/// A variance that rounding makes negative counts as 0. Gradients by rows are refused.
/// Throws: Error for options out of range.
/// Source: Hinton, Neural networks for machine learning, lecture 6e (2012); centred: Graves, Generating sequences with
/// recurrent neural networks (2013), as PyTorch's RMSprop computes it.
class RMSprop : public OptimiserWith<RMSpropOptions> {
 public:
  explicit RMSprop(std::vector<Tensor> parameters, RMSpropOptions options = {}, Location where = Location::here());

 private:
  void check(const RMSpropOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t group) const override;
  detail::Descent descent(std::size_t group, Progress& progress, Device device) const override;
};

}  // namespace reel::optim
