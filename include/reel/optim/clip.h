#pragma once

#include <span>
#include <vector>

#include <reel/tensor.h>

namespace reel::optim {

/// Scales the gradients of all parameters by min(1, max_norm / (norm + 10⁻⁶)), where norm is the Euclidean norm of all
/// of them as one vector, and returns the norm from before. A norm that is not finite leaves them as they are.
/// Parameters without a gradient count for nothing. Handles of a gradient that were taken before keep their values: a
/// gradient that is held elsewhere is replaced, not overwritten.
/// Throws: Error unless max_norm is 0 or more; DTypeError unless every gradient is f32 or f64.
/// Source: Pascanu et al., On the difficulty of training recurrent neural networks (ICML 2013), as PyTorch's
/// clip_grad_norm_ computes it.
double clip_grad_norm(std::span<const Tensor> parameters, double max_norm, Location where = Location::here());
inline double clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm,
                             Location where = Location::here()) {
  return clip_grad_norm(std::span<const Tensor>(parameters), max_norm, where);
}

}  // namespace reel::optim
