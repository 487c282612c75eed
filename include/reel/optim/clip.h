#pragma once

#include <span>
#include <vector>

#include <reel/tensor.h>

namespace reel::optim {

// Of all functions below: parameters without a gradient count for nothing. Of a gradient by rows the rows are changed, the
// others have none. Handles of a gradient that were taken before keep their values: a gradient that is held elsewhere is
// replaced, not overwritten. They throw DTypeError unless every gradient is f32 or f64.

/// Scales the gradients of all parameters by min(1, max_norm / (norm + 10⁻⁶)), where norm is the Euclidean norm of all
/// of them as one vector, and returns the norm from before. A norm that is not finite leaves them as they are.
/// Throws: Error unless max_norm is 0 or more; DTypeError.
/// Source: Pascanu et al., On the difficulty of training recurrent neural networks (ICML 2013), as PyTorch's
/// clip_grad_norm_ computes it.
double clip_grad_norm(std::span<const Tensor> parameters, double max_norm, Location where = Location::here());
inline double clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm,
                             Location where = Location::here()) {
  return clip_grad_norm(std::span<const Tensor>(parameters), max_norm, where);
}

/// The same for each parameter by itself: layer by layer. Returns the norms from before, 0 without a gradient.
/// Throws: Error unless max_norm is 0 or more; DTypeError.
std::vector<double> clip_grad_norm_each(std::span<const Tensor> parameters, double max_norm,
                                        Location where = Location::here());
inline std::vector<double> clip_grad_norm_each(const std::vector<Tensor>& parameters, double max_norm,
                                               Location where = Location::here()) {
  return clip_grad_norm_each(std::span<const Tensor>(parameters), max_norm, where);
}

/// Cuts every element of the gradients to [−limit, limit]; NaN stays. Throws: Error unless limit is 0 or more; DTypeError.
/// Source: PyTorch's clip_grad_value_.
void clip_grad_value(std::span<const Tensor> parameters, double limit, Location where = Location::here());
inline void clip_grad_value(const std::vector<Tensor>& parameters, double limit, Location where = Location::here()) {
  clip_grad_value(std::span<const Tensor>(parameters), limit, where);
}

/// Multiplies the gradients by a factor: by 1 / n after n backwards they are the mean of n losses.
/// Throws: Error for a factor that is not finite; DTypeError.
void scale_grad(std::span<const Tensor> parameters, double factor, Location where = Location::here());
inline void scale_grad(const std::vector<Tensor>& parameters, double factor, Location where = Location::here()) {
  scale_grad(std::span<const Tensor>(parameters), factor, where);
}

}  // namespace reel::optim
