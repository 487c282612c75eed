#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

struct AdadeltaOptions {
  double learning_rate = 1;
  /// ρ: how much of the mean squares a step keeps, in [0, 1).
  double rho = 0.9;
  /// ε: keeps the division finite, and starts the first steps.
  double epsilon = 1e-6;
  /// λ: adds λ w to the gradient of w.
  double weight_decay = 0;
};

/// Descent whose steps have the units of w:
///
///     g = gradient + λ w
///     s = ρ s + (1 − ρ) g²           s and a start at 0
///     δ = √(a + ε) / √(s + ε) · g
///     a = ρ a + (1 − ρ) δ²
///     w = w − rate · δ
///
/// Gradients by rows are refused. Throws: Error for options out of range.
/// Source: Zeiler, ADADELTA: an adaptive learning rate method (2012), as PyTorch's Adadelta computes it.
class Adadelta : public OptimiserWith<AdadeltaOptions> {
 public:
  explicit Adadelta(std::vector<Tensor> parameters, AdadeltaOptions options = {}, Location where = Location::here());

 private:
  void check(const AdadeltaOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t) const override { return {"square", "step_square"}; }
  detail::Descent descent(std::size_t group, Progress& progress, Device device) const override;
};

}  // namespace reel::optim
