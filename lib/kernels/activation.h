#pragma once

#include "kernel_table.h"

namespace reel::detail {

/// Activation functions of an element and up to two parameters.
enum class Activation : std::uint8_t {
  leaky_relu,  ///< slope
  gelu,
  tanh_gelu,
  silu,
  elu,       ///< alpha, scale
  softplus,  ///< beta, threshold
  hardtanh,  ///< low, high
  count
};

struct ActivationKernels {
  /// y = f(x; first, second).
  void (*forward[static_cast<int>(Activation::count)])(const View& out, const View& x, double first, double second);
  /// d f'(x; first, second).
  void (*gradient[static_cast<int>(Activation::count)])(const View& out, const View& d, const View& x, double first,
                                                        double second);
  /// Softmax over those elements of the last axis where the mask, which broadcasts, is true; elsewhere 0, or −∞.
  KernelTable::BinaryKernel masked_softmax;
  KernelTable::BinaryKernel masked_log_softmax;
};

}  // namespace reel::detail
