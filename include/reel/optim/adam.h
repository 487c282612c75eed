#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

struct AdamOptions {
  double learning_rate = 1e-3;
  /// β₁: how much of the mean gradient a step keeps, in [0, 1).
  double beta1 = 0.9;
  /// β₂: how much of the mean squared gradient a step keeps, in [0, 1).
  double beta2 = 0.999;
  /// ε: keeps the division finite.
  double epsilon = 1e-8;
  /// λ: adds λ w to the gradient of w.
  double weight_decay = 0;
  /// Divides by the root of the largest v so far.
  bool amsgrad = false;
};

/// Adaptive moment estimation; t counts the steps of a parameter from 1:
///
///     g = gradient + λ w
///     m = β₁ m + (1 − β₁) g          m and v start at 0
///     v = β₂ v + (1 − β₂) g²
///     w = w − rate / (1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) + ε)
///
/// Of a gradient by rows, m, v and w of the other rows stay as they are (PyTorch's SparseAdam), while t counts every
/// step. Throws: Error for options out of range.
/// Source: Kingma and Ba, Adam: a method for stochastic optimization (ICLR 2015), as PyTorch's Adam computes it; amsgrad:
/// Reddi et al., On the convergence of Adam and beyond (ICLR 2018).
class Adam : public OptimiserWith<AdamOptions> {
 public:
  explicit Adam(std::vector<Tensor> parameters, AdamOptions options = {}, Location where = Location::here());

 private:
  void check(const AdamOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t group) const override;
  detail::Descent descent(std::size_t group, Progress& progress, Device device) const override;
  bool takes_rows() const override { return true; }
};

}  // namespace reel::optim
