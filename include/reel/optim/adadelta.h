#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

/// Options of Adadelta.
struct AdadeltaOptions {
  /// The learning rate; at least 0. Default 1.
  double learning_rate = 1;
  /// ρ: the decay of the mean squares, in [0, 1). Default 0.9.
  double rho = 0.9;
  /// ε, added to the mean squares, which keeps the division finite and makes the first steps move; at least 0. Default
  /// 1e-6.
  double epsilon = 1e-6;
  /// λ: the weight decay, which adds λ w to the gradient of w; at least 0. Default 0.
  double weight_decay = 0;
};

/// Adadelta: gradient descent whose steps have the units of w:
///
///     g = gradient + λ w
///     s = ρ s + (1 − ρ) g²           s and a start at 0
///     δ = √(a + ε) / √(s + ε) · g
///     a = ρ a + (1 − ρ) δ²
///     w = w − rate · δ
///
/// A gradient by rows is an error.
/// Throws: Error for options out of range.
/// Source: Zeiler, ADADELTA: an adaptive learning rate method (2012), as PyTorch's Adadelta computes it.
class Adadelta : public OptimiserWith<AdadeltaOptions> {
 public:
  /// Optimises `parameters`, which are group 0.
  /// Throws: Error for options out of range, for no parameter, an undefined tensor, and one that is not a parameter or
  /// occurs twice; DTypeError unless f32 or f64; ShapeError unless contiguous.
  explicit Adadelta(std::vector<Tensor> parameters, AdadeltaOptions options = {}, Location where = Location::here());

 private:
  void check(const AdadeltaOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t) const override { return {"square", "step_square"}; }
  detail::UpdateStep update_step(std::size_t group, Progress& progress, Device device) const override;
};

}  // namespace reel::optim
