#pragma once

#include <cstdint>

#include <reel/tensor.h>

/// \file
/// Elementwise activation functions, with PyTorch's names, defaults and gradients at kinks. Infinite elements give the
/// limits.

namespace reel {

/// Options of `leaky_relu`.
struct LeakyReluOptions {
  double slope = 0.01;  ///< the factor of negative elements, any number; default 0.01
};

/// x where x > 0, else slope · x, elementwise. The gradient at 0 is the slope.
/// Throws: DTypeError unless x is floating.
/// Source: Maas et al., Rectifier nonlinearities improve neural network acoustic models (ICML 2013).
Tensor leaky_relu(const Arg& x, LeakyReluOptions options = {});

/// How `gelu` computes Φ: exactly, or by a tanh.
enum class GeluApproximation : std::uint8_t { none, tanh };

/// Options of `gelu`.
struct GeluOptions {
  GeluApproximation approximate = GeluApproximation::none;  ///< default: exact
};

/// x Φ(x), elementwise, with Φ(x) = (1 + erf(x / √2)) / 2; or with the tanh approximation x (1 + tanh √(2/π) (x +
/// 0.044715 x³)) / 2.
/// Throws: DTypeError unless x is floating.
/// Source: Hendrycks and Gimpel, Gaussian error linear units (2016).
Tensor gelu(const Arg& x, GeluOptions options = {});

/// x sigmoid(x), elementwise.
/// Throws: DTypeError unless x is floating.
/// Source: Elfwing et al., Sigmoid-weighted linear units (2017).
Tensor silu(const Arg& x);

/// x tanh(log(1 + e^x)), elementwise.
/// Throws: DTypeError unless x is floating.
/// Source: Misra, Mish: A self regularized non-monotonic activation function (BMVC 2020).
Tensor mish(const Arg& x);

/// x min(max(x + 3, 0), 6) / 6, elementwise. The gradient is 0 at −3 and 1 at 3.
/// Throws: DTypeError unless x is floating.
/// Source: Howard et al., Searching for MobileNetV3 (ICCV 2019).
Tensor hardswish(const Arg& x);

/// min(max(x + 3, 0), 6) / 6, elementwise. The gradient is 0 at −3 and 3.
/// Throws: DTypeError unless x is floating.
/// Source: PyTorch's hardsigmoid.
Tensor hardsigmoid(const Arg& x);

/// log(sigmoid(x)) = −log(1 + e^−x), elementwise, without overflow and accurate for any x.
/// Throws: DTypeError unless x is floating.
/// Source: PyTorch's logsigmoid.
Tensor logsigmoid(const Arg& x);

/// x / (1 + |x|), elementwise.
/// Throws: DTypeError unless x is floating.
/// Source: PyTorch's softsign.
Tensor softsign(const Arg& x);

/// Options of `elu`.
struct EluOptions {
  double alpha = 1;  ///< α, any number; default 1
};

/// x where x > 0, else α (e^x − 1), elementwise. The gradient at 0 is α.
/// Throws: DTypeError unless x is floating.
/// Source: Clevert et al., Fast and accurate deep network learning by exponential linear units (ICLR 2016).
Tensor elu(const Arg& x, EluOptions options = {});

/// Options of `celu`.
struct CeluOptions {
  double alpha = 1;  ///< α, any number but 0; default 1
};

/// x where x > 0, else α (e^(x / α) − 1), elementwise. The gradient at 0 is 1.
/// Throws: Error if α is 0; DTypeError unless x is floating.
/// Source: Barron, Continuously differentiable exponential linear units (2017).
Tensor celu(const Arg& x, CeluOptions options = {});

/// λ elu(x), elementwise, with λ = 1.0507009873554805 and α = 1.6732632423543772: its results tend to mean 0 and
/// variance 1. The gradient at 0 is λ α.
/// Throws: DTypeError unless x is floating.
/// Source: Klambauer et al., Self-normalizing neural networks (NeurIPS 2017).
Tensor selu(const Arg& x);

/// Options of `softplus`.
struct SoftplusOptions {
  /// β, above 0. Default 1.
  double beta = 1;
  /// Where β x is larger, the result is x itself. Default 20.
  double threshold = 20;
};

/// log(1 + e^(β x)) / β, elementwise.
/// Throws: Error unless β is above 0; DTypeError unless x is floating.
/// Source: PyTorch's softplus.
Tensor softplus(const Arg& x, SoftplusOptions options = {});

/// Options of `hardtanh`.
struct HardtanhOptions {
  double low = -1,  ///< at most `high`; default −1
      high = 1;     ///< default 1
};

/// min(max(x, low), high), elementwise. The gradient is 0 at both ends, where that of `clamp` is 1.
/// Throws: Error if low > high; DTypeError unless x is floating.
/// Source: PyTorch's hardtanh.
Tensor hardtanh(const Arg& x, HardtanhOptions options = {});

/// Options of `softshrink` and `hardshrink`.
struct ShrinkOptions {
  double lambda = 0.5;  ///< λ, at least 0; default 0.5
};

/// x − λ where x > λ, x + λ where x < −λ, else 0, elementwise; NaN for NaN. The gradient at ±λ is 0.
/// Throws: Error for a negative λ; DTypeError unless x is floating.
/// Source: PyTorch's softshrink.
Tensor softshrink(const Arg& x, ShrinkOptions options = {});

/// x where |x| > λ, else 0, elementwise; NaN for NaN. The gradient at ±λ is 0.
/// Throws: Error for a negative λ; DTypeError unless x is floating.
/// Source: PyTorch's hardshrink.
Tensor hardshrink(const Arg& x, ShrinkOptions options = {});

/// x where x > 0, else weight · x, elementwise: x: (N, C, d…) and weight: (C), a slope for each channel on axis 1; or x
/// of any shape and a single slope, of shape (1) or (). The gradient at 0 is the slope.
/// Throws: ShapeError unless the weight fits; DTypeError unless both have one floating dtype; DeviceError for operands
/// on different devices.
/// Source: PyTorch's prelu; He et al., Delving deep into rectifiers (ICCV 2015).
Tensor prelu(const Arg& x, const Arg& weight);

/// a sigmoid(b) of the halves a, b of x along an axis (default the last), which becomes half as long.
/// Throws: ShapeError for an odd size or an axis that does not exist; DTypeError unless x is floating.
/// Source: Dauphin et al., Language modeling with gated convolutional networks (ICML 2017).
Tensor glu(const Arg& x, int axis = -1);

}  // namespace reel
