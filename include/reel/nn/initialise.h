#pragma once

#include <functional>

#include <reel/ops/random.h>
#include <reel/tensor.h>

// First values of parameters. The fans of a weight (in, out) are its two sizes; of a weight (out, in, k…), as that of a
// convolution, they are in · Πk and out · Πk.

namespace reel::nn {

/// Makes the first values of a parameter, of the given shape, in the dtype, on the device and from the generator named.
using Initialiser = std::function<Tensor(const Shape& shape, const RandomOptions& options)>;

/// Every element `value`.
Initialiser constant(double value);
/// Uniform on [low, high).
Initialiser uniform(double low, double high);
/// Normal with the given mean and standard deviation.
Initialiser normal(double mean = 0, double deviation = 1);

/// Uniform on ±gain · √(6 / (fan_in + fan_out)): keeps the variance of values and gradients through linear layers.
/// Throws: ShapeError, when it draws, for a shape of rank below 2; so do the three below.
/// Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks (AISTATS 2010).
Initialiser xavier_uniform(double gain = 1);
/// Normal with deviation gain · √(2 / (fan_in + fan_out)). Source: as `xavier_uniform`.
Initialiser xavier_normal(double gain = 1);
/// Uniform on ±gain · √(3 / fan_in); the default gain √2 is that for ReLU.
/// Source: He et al., Delving deep into rectifiers (ICCV 2015), section 2.2.
Initialiser he_uniform(double gain = 1.4142135623730951);
/// Normal with deviation gain / √fan_in. Source: as `he_uniform`.
Initialiser he_normal(double gain = 1.4142135623730951);

}  // namespace reel::nn
