#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

struct AdagradOptions {
  double learning_rate = 1e-2;
  /// η: the rate of step t is divided by 1 + (t − 1) η.
  double rate_decay = 0;
  /// λ: adds λ w to the gradient of w.
  double weight_decay = 0;
  /// What s starts with.
  double initial_sum = 0;
  /// ε: keeps the division finite.
  double epsilon = 1e-10;
};

/// Descent that divides by the root of all squared gradients so far; t counts the steps of a parameter from 1:
///
///     g = gradient + λ w
///     s = s + g²
///     w = w − rate / (1 + (t − 1) η) · g / (√s + ε)
///
/// Of a gradient by rows, s and w of the other rows stay as they are. Throws: Error for options out of range.
/// Source: Duchi et al., Adaptive subgradient methods for online learning and stochastic optimization (JMLR 2011), as
/// PyTorch's Adagrad computes it.
class Adagrad : public OptimiserWith<AdagradOptions> {
 public:
  explicit Adagrad(std::vector<Tensor> parameters, AdagradOptions options = {}, Location where = Location::here());

 private:
  void check(const AdagradOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t) const override { return {"sum"}; }
  double kept_start(std::size_t group) const override { return options(group).initial_sum; }
  detail::Descent descent(std::size_t group, Progress& progress, Device device) const override;
  bool takes_rows() const override { return true; }
};

}  // namespace reel::optim
