#pragma once

#include <cstdint>
#include <functional>

#include <reel/ops/random.h>
#include <reel/tensor.h>

/// \file
/// Initial values of parameters. The fans of a weight (in, out) are its two sizes; those of a weight (out, in, k…), as
/// that of a convolution, are in · Πk and out · Πk.

namespace reel::nn {

/// Computes the initial values of a parameter of the given shape, in the dtype, on the device and with the generator of
/// the options.
using Initialiser = std::function<Tensor(const Shape& shape, const RandomOptions& options)>;

/// Every element `value`.
Initialiser constant(double value);
/// Uniform on [low, high).
Initialiser uniform(double low, double high);
/// Normal with the given mean and standard deviation, by default 0 and 1.
Initialiser normal(double mean = 0, double deviation = 1);
/// Normal with the given mean and standard deviation where the distance from the mean is in [low, high], in deviations;
/// no values outside.
/// Throws: Error, at once, unless low < high.
/// Source: JAX's truncated_normal.
Initialiser truncated_normal(double mean = 0, double deviation = 1, double low = -2, double high = 2,
                             Location where = Location::here());

/// The function that follows a layer.
enum class Nonlinearity : std::uint8_t { linear, sigmoid, tanh, relu, leaky_relu, selu };

/// The factor of a layer's weights for the function that follows it: linear and sigmoid 1, tanh 5/3, relu √2,
/// leaky_relu √(2 / (1 + slope²)), selu 3/4. The slope is that of leaky_relu, by default 0.01.
/// Source: PyTorch's calculate_gain.
double gain(Nonlinearity nonlinearity, double slope = 0.01);

/// The fan by which the variance of a weight is divided: `in` keeps the variance of values through the layer, `out`
/// that of gradients; `average` is (in + out) / 2.
enum class Fan : std::uint8_t { in, out, average };

/// Uniform on ±gain · √(6 / (fan_in + fan_out)): keeps the variance of values and gradients through linear layers.
/// Throws: ShapeError, when it draws, for a shape of rank below 2.
/// Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks (AISTATS 2010).
Initialiser xavier_uniform(double gain = 1);
/// Normal with mean 0 and standard deviation gain · √(2 / (fan_in + fan_out)): keeps the variance of values and
/// gradients through linear layers.
/// Throws: ShapeError, when it draws, for a shape of rank below 2.
/// Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks (AISTATS 2010).
Initialiser xavier_normal(double gain = 1);
/// Uniform on ±gain · √(3 / fan); the default gain √2 is that for ReLU.
/// Throws: ShapeError, when it draws, for a shape of rank below 2.
/// Source: He et al., Delving deep into rectifiers (ICCV 2015), section 2.2.
Initialiser he_uniform(double gain = 1.4142135623730951, Fan fan = Fan::in);
/// Normal with mean 0 and standard deviation gain / √fan; the default gain √2 is that for ReLU.
/// Throws: ShapeError, when it draws, for a shape of rank below 2.
/// Source: He et al., Delving deep into rectifiers (ICCV 2015), section 2.2.
Initialiser he_normal(double gain = 1.4142135623730951, Fan fan = Fan::in);

/// `gain` times a random matrix with orthonormal columns, or rows if those are fewer, uniformly distributed. A weight
/// (out, in, k…) is treated as the matrix (out, in · Πk).
/// Throws: ShapeError, when it draws, for a shape of rank below 2.
/// Source: Saxe et al., Exact solutions to the nonlinear dynamics of learning in deep linear neural networks (ICLR
/// 2014); Mezzadri, How to generate random matrices from the classical compact groups (2007).
Initialiser orthogonal(double gain = 1);

/// A layer that returns `gain` times its input: (in, out) with `gain` on the diagonal, or (out, in / groups, k…) with
/// `gain` in the middle of the window where, in each group, output and input channel are one. Zeros elsewhere.
/// Throws: ShapeError, when it draws, for a rank below 2, and unless the groups divide `out`, and are 1 for a matrix.
/// Source: PyTorch's eye_ and dirac_.
Initialiser identity(double gain = 1, std::int64_t groups = 1);

/// Weights (in, out) in which each output has ⌈sparsity · in⌉ zeros among its inputs, the others normal with mean 0 and
/// the given standard deviation.
/// Throws: Error, at once, unless the sparsity is in [0, 1]; ShapeError, when it draws, for a rank other than 2.
/// Source: Martens, Deep learning via Hessian-free optimization (ICML 2010), section 5.
Initialiser sparse(double sparsity, double deviation = 0.01, Location where = Location::here());

}  // namespace reel::nn
