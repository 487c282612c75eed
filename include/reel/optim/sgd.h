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
/// Of a gradient by rows, v and w of the other rows stay as they are: momentum and weight decay wait until a row has a
/// gradient again. Throws: Error for options out of range. Source: PyTorch's SGD, without dampening.
class SGD : public Optimiser {
 public:
  explicit SGD(std::vector<Tensor> parameters, SGDOptions options = {}, Location where = Location::here());

 private:
  void update(std::size_t index, Tensor& parameter, const Tensor& gradient, Location where) override;
  void update_rows(std::size_t index, Tensor& parameter, const RowGradient& gradient, Location where) override;
  Tensor* velocity_of(std::size_t index);

  SGDOptions options_;
  std::vector<Tensor> velocities_;  // none without momentum
};

}  // namespace reel::optim
