#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

struct SGDOptions {
  double learning_rate = 1e-2;
  /// μ, in [0, 1).
  double momentum = 0;
  /// λ: adds λ w to the gradient of w.
  double weight_decay = 0;
  /// Looks ahead along the momentum; needs momentum > 0.
  bool nesterov = false;
};

/// Stochastic gradient descent:
///
///     g = gradient + λ w
///     v = μ v + g                    v starts at 0
///     w = w − rate · v               with nesterov: w − rate · (g + μ v)
///
/// Throws: Error for options out of range. Source: PyTorch's SGD, without dampening.
class SGD : public Optimiser {
 public:
  explicit SGD(std::vector<Tensor> parameters, SGDOptions options = {}, Location where = Location::here());

 private:
  void update(std::size_t index, Tensor& parameter, const Tensor& gradient, Location where) override;

  SGDOptions options_;
  std::vector<Tensor> velocities_;  // none without momentum
};

}  // namespace reel::optim
