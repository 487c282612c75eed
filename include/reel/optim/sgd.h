#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

/// Options of SGD.
struct SGDOptions {
  /// The learning rate; at least 0. Default 1e-2.
  double learning_rate = 1e-2;
  /// μ: the momentum, in [0, 1). Default 0.
  double momentum = 0;
  /// τ, in [0, 1]: the share of the gradient that is left out of the velocity, except in the first step with a
  /// momentum. Default 0.
  double dampening = 0;
  /// λ: the weight decay, which adds λ w to the gradient of w; at least 0. Default 0.
  double weight_decay = 0;
  /// Whether to use Nesterov's momentum; needs momentum > 0 and no dampening. Default false.
  bool nesterov = false;
};

/// Stochastic gradient descent:
///
///     g = gradient + λ w
///     v = μ v + (1 − τ) g            v starts as the first g with a momentum
///     w = w − rate · v               with nesterov: w − rate · (g + μ v)
///
/// For a gradient by rows, v and w of the other rows stay as they are: momentum and weight decay wait until a row has a
/// gradient again.
/// Throws: Error for options out of range.
/// Source: Sutskever et al., On the importance of initialization and momentum in deep learning (ICML 2013), as
/// PyTorch's SGD computes it.
class SGD : public OptimiserWith<SGDOptions> {
 public:
  /// Optimises `parameters`, which are group 0.
  /// Throws: Error for options out of range, for no parameter, an undefined tensor, and one that is not a parameter or
  /// occurs twice; DTypeError unless f32 or f64; ShapeError unless contiguous.
  explicit SGD(std::vector<Tensor> parameters, SGDOptions options = {}, Location where = Location::here());

 private:
  void check(const SGDOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t) const override;
  detail::UpdateStep update_step(std::size_t group, Progress& progress, Device device) const override;
  bool takes_rows() const override { return true; }
};

}  // namespace reel::optim
