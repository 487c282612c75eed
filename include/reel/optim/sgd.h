#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

struct SGDOptions {
  double learning_rate = 1e-2;
  /// μ, in [0, 1).
  double momentum = 0;
  /// τ, in [0, 1]: how much of the gradient does not reach the momentum, but for the first step that has one.
  double dampening = 0;
  /// λ: adds λ w to the gradient of w.
  double weight_decay = 0;
  /// Looks ahead along the momentum; needs momentum > 0 and no dampening.
  bool nesterov = false;
};

/// Stochastic gradient descent:
///
///     g = gradient + λ w
///     v = μ v + (1 − τ) g            v starts as the first g with a momentum
///     w = w − rate · v               with nesterov: w − rate · (g + μ v)
///
/// Of a gradient by rows, v and w of the other rows stay as they are: momentum and weight decay wait until a row has a
/// gradient again. Throws: Error for options out of range.
/// Source: Sutskever et al., On the importance of initialization and momentum in deep learning (ICML 2013), as PyTorch's
/// SGD computes it.
class SGD : public OptimiserWith<SGDOptions> {
 public:
  explicit SGD(std::vector<Tensor> parameters, SGDOptions options = {}, Location where = Location::here());

 private:
  void check(const SGDOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t) const override;
  detail::Descent descent(std::size_t group, Progress& progress, Device device) const override;
  bool takes_rows() const override { return true; }
};

}  // namespace reel::optim
