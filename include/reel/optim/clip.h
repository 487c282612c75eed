#pragma once

#include <span>
#include <vector>

#include <reel/tensor.h>

namespace reel::optim {

/// \file
/// Functions that clip or scale gradients. Parameters without a gradient are skipped. For a gradient by rows the rows
/// are changed. Handles of a gradient that were taken before keep their values: a gradient that is held elsewhere is
/// replaced, not overwritten.

/// Clips the gradients of all parameters by their common norm: multiplies them by min(1, max_norm / (norm + 10⁻⁶)),
/// where norm is the Euclidean norm of all of them as one vector, and returns the norm from before. Parameters without
/// a gradient are skipped. A norm that is not finite leaves the gradients as they are.
/// Throws: Error unless max_norm is 0 or more, and for an undefined tensor; DTypeError unless every gradient is f32 or
/// f64.
/// Source: Pascanu et al., On the difficulty of training recurrent neural networks (ICML 2013), as PyTorch's
/// clip_grad_norm_ computes it.
double clip_grad_norm(std::span<const Tensor> parameters, double max_norm, Location where = Location::here());
/// Clips the gradients of all parameters by their common norm: multiplies them by min(1, max_norm / (norm + 10⁻⁶)),
/// where norm is the Euclidean norm of all of them as one vector, and returns the norm from before. Parameters without
/// a gradient are skipped. A norm that is not finite leaves the gradients as they are.
/// Throws: Error unless max_norm is 0 or more, and for an undefined tensor; DTypeError unless every gradient is f32 or
/// f64.
/// Source: Pascanu et al., On the difficulty of training recurrent neural networks (ICML 2013), as PyTorch's
/// clip_grad_norm_ computes it.
inline double clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm,
                             Location where = Location::here()) {
  return clip_grad_norm(std::span<const Tensor>(parameters), max_norm, where);
}

/// Clips the gradient of each parameter by its own norm: multiplies it by min(1, max_norm / (norm + 10⁻⁶)), where norm
/// is its Euclidean norm, and returns the norms from before, 0 without a gradient. A norm that is not finite leaves its
/// gradient as it is.
/// Throws: Error unless max_norm is 0 or more, and for an undefined tensor; DTypeError unless every gradient is f32 or
/// f64.
std::vector<double> clip_grad_norm_each(std::span<const Tensor> parameters, double max_norm,
                                        Location where = Location::here());
/// Clips the gradient of each parameter by its own norm: multiplies it by min(1, max_norm / (norm + 10⁻⁶)), where norm
/// is its Euclidean norm, and returns the norms from before, 0 without a gradient. A norm that is not finite leaves its
/// gradient as it is.
/// Throws: Error unless max_norm is 0 or more, and for an undefined tensor; DTypeError unless every gradient is f32 or
/// f64.
inline std::vector<double> clip_grad_norm_each(const std::vector<Tensor>& parameters, double max_norm,
                                               Location where = Location::here()) {
  return clip_grad_norm_each(std::span<const Tensor>(parameters), max_norm, where);
}

/// Clips every element of the gradients to [−limit, limit]; NaN stays. Parameters without a gradient are skipped.
/// Throws: Error unless limit is 0 or more, and for an undefined tensor; DTypeError unless every gradient is f32 or
/// f64.
/// Source: PyTorch's clip_grad_value_.
void clip_grad_value(std::span<const Tensor> parameters, double limit, Location where = Location::here());
/// Clips every element of the gradients to [−limit, limit]; NaN stays. Parameters without a gradient are skipped.
/// Throws: Error unless limit is 0 or more, and for an undefined tensor; DTypeError unless every gradient is f32 or
/// f64.
/// Source: PyTorch's clip_grad_value_.
inline void clip_grad_value(const std::vector<Tensor>& parameters, double limit, Location where = Location::here()) {
  clip_grad_value(std::span<const Tensor>(parameters), limit, where);
}

/// Multiplies the gradients by a factor: by 1 / n after n backward passes they are the mean of n losses. Parameters
/// without a gradient are skipped.
/// Throws: Error for a factor that is not finite, and for an undefined tensor; DTypeError unless every gradient is f32
/// or f64.
void scale_grad(std::span<const Tensor> parameters, double factor, Location where = Location::here());
/// Multiplies the gradients by a factor: by 1 / n after n backward passes they are the mean of n losses. Parameters
/// without a gradient are skipped.
/// Throws: Error for a factor that is not finite, and for an undefined tensor; DTypeError unless every gradient is f32
/// or f64.
inline void scale_grad(const std::vector<Tensor>& parameters, double factor, Location where = Location::here()) {
  scale_grad(std::span<const Tensor>(parameters), factor, where);
}

}  // namespace reel::optim
