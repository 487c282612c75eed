#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

/// Options of Adagrad.
struct AdagradOptions {
  /// The learning rate; at least 0. Default 1e-2.
  double learning_rate = 1e-2;
  /// η: the rate of step t is divided by 1 + (t − 1) η; at least 0. Default 0.
  double rate_decay = 0;
  /// λ: the weight decay, which adds λ w to the gradient of w; at least 0. Default 0.
  double weight_decay = 0;
  /// The initial value of s; at least 0. Default 0.
  double initial_sum = 0;
  /// ε, added to the denominator so that the division is finite; at least 0. Default 1e-10.
  double epsilon = 1e-10;
};

/// Adagrad: gradient descent that divides by the root of all squared gradients so far; t counts the steps of a
/// parameter from 1:
///
///     g = gradient + λ w
///     s = s + g²
///     w = w − rate / (1 + (t − 1) η) · g / (√s + ε)
///
/// For a gradient by rows, s and w of the other rows stay as they are.
/// Throws: Error for options out of range.
/// Source: Duchi et al., Adaptive subgradient methods for online learning and stochastic optimization (JMLR 2011), as
/// PyTorch's Adagrad computes it.
class Adagrad : public OptimiserWith<AdagradOptions> {
 public:
  /// Optimises `parameters`, which are group 0.
  /// Throws: Error for options out of range, for no parameter, an undefined tensor, and one that is not a parameter or
  /// occurs twice; DTypeError unless f32 or f64; ShapeError unless contiguous.
  explicit Adagrad(std::vector<Tensor> parameters, AdagradOptions options = {}, Location where = Location::here());

 private:
  void check(const AdagradOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t) const override { return {"sum"}; }
  Tensor new_kept(const Tensor& parameter, std::size_t group, std::size_t index) const override;
  detail::UpdateStep update_step(std::size_t group, Progress& progress, Device device) const override;
  bool takes_rows() const override { return true; }
};

}  // namespace reel::optim
