#pragma once

#include <cstdint>

#include <reel/tensor.h>

// Elementwise functions between the layers of networks, with PyTorch's names, defaults and gradients at kinks. Infinite
// elements give the limits. All throw DTypeError unless x is floating.

namespace reel {

struct LeakyReluOptions {
  double slope = 0.01;
};

/// x where x > 0, else slope x. The gradient at 0 is the slope.
/// Source: Maas et al., Rectifier nonlinearities improve neural network acoustic models (ICML 2013).
Tensor leaky_relu(const Arg& x, LeakyReluOptions options = {});

enum class GeluApproximation : std::uint8_t { none, tanh };

struct GeluOptions {
  GeluApproximation approximate = GeluApproximation::none;
};

/// x Φ(x), Φ(x) = (1 + erf(x / √2)) / 2; or with tanh x (1 + tanh √(2/π) (x + 0.044715 x³)) / 2.
/// Source: Hendrycks and Gimpel, Gaussian error linear units (2016).
Tensor gelu(const Arg& x, GeluOptions options = {});

/// x sigmoid(x).
/// Source: Elfwing et al., Sigmoid-weighted linear units (2017).
Tensor silu(const Arg& x);

struct EluOptions {
  double alpha = 1;
};

/// x where x > 0, else α (e^x − 1). The gradient at 0 is α.
/// Source: Clevert et al., Fast and accurate deep network learning by exponential linear units (ICLR 2016).
Tensor elu(const Arg& x, EluOptions options = {});

/// λ elu(x) with λ = 1.0507009873554805 and α = 1.6732632423543772: its results tend to mean 0 and variance 1. The
/// gradient at 0 is λ α.
/// Source: Klambauer et al., Self-normalizing neural networks (NeurIPS 2017).
Tensor selu(const Arg& x);

struct SoftplusOptions {
  /// Above 0.
  double beta = 1;
  /// Where β x is larger, the result is x itself.
  double threshold = 20;
};

/// log(1 + e^(β x)) / β. Throws: Error unless β is above 0.
Tensor softplus(const Arg& x, SoftplusOptions options = {});

struct HardtanhOptions {
  double low = -1, high = 1;
};

/// min(max(x, low), high). The gradient is 0 at both ends, where that of `clamp` is 1. Throws: Error if low > high.
Tensor hardtanh(const Arg& x, HardtanhOptions options = {});

/// a sigmoid(b) of the halves a, b of x along an axis. Throws: ShapeError for an odd size or an axis that does not exist.
/// Source: Dauphin et al., Language modeling with gated convolutional networks (ICML 2017).
Tensor glu(const Arg& x, int axis = -1);

}  // namespace reel
