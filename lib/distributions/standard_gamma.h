#pragma once

#include <reel/ops/random.h>
#include <reel/tensor.h>

namespace reel::detail {

/// log z of samples z of the gamma distributions with concentrations α and the rate 1, computed in f64, with gradients of
/// any order: α (sample shape) → (sample shape), f64. The logarithm is finite where z itself would be 0.
/// Source: Marsaglia and Tsang, A simple method for generating gamma variables (2000); for the gradient Figurnov et al.,
/// Implicit reparameterization gradients (NeurIPS 2018).
Tensor log_standard_gamma(const Tensor& concentration, Generator* generator);

}  // namespace reel::detail
