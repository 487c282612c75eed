#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

/// Options of Adam.
struct AdamOptions {
  /// The learning rate; at least 0. Default 1e-3.
  double learning_rate = 1e-3;
  /// β₁: the decay of the mean gradient, in [0, 1). Default 0.9.
  double beta1 = 0.9;
  /// β₂: the decay of the mean squared gradient, in [0, 1). Default 0.999.
  double beta2 = 0.999;
  /// ε, added to the denominator so that the division is finite; at least 0. Default 1e-8.
  double epsilon = 1e-8;
  /// λ: the weight decay, which adds λ w to the gradient of w; at least 0. Default 0.
  double weight_decay = 0;
  /// Whether to divide by the root of the largest v so far. Default false.
  bool amsgrad = false;
};

/// Adaptive moment estimation; t counts the steps of a parameter from 1:
///
///     g = gradient + λ w
///     m = β₁ m + (1 − β₁) g          m and v start at 0
///     v = β₂ v + (1 − β₂) g²
///     w = w − rate / (1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) + ε)
///
/// For a gradient by rows, m, v and w of the other rows stay as they are (PyTorch's SparseAdam), while t counts every
/// step.
/// Throws: Error for options out of range.
/// Source: Kingma and Ba, Adam: a method for stochastic optimization (ICLR 2015), as PyTorch's Adam computes it;
/// amsgrad: Reddi et al., On the convergence of Adam and beyond (ICLR 2018).
class Adam : public OptimiserWith<AdamOptions> {
 public:
  /// Optimises `parameters`, which are group 0.
  /// Throws: Error for options out of range, for no parameter, an undefined tensor, and one that is not a parameter or
  /// occurs twice; DTypeError unless f32 or f64; ShapeError unless contiguous.
  explicit Adam(std::vector<Tensor> parameters, AdamOptions options = {}, Location where = Location::here());

 private:
  void check(const AdamOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t group) const override;
  detail::UpdateStep update_step(std::size_t group, Progress& progress, Device device) const override;
  bool takes_rows() const override { return true; }
};

}  // namespace reel::optim
