#pragma once

#include "kernel_table.h"

namespace reel::detail {

/// The parameters of an activation function, as many as its row says.
using ActivationParameters = double[3];

struct ActivationKernels {
  /// y = f(x; parameters), by `activation_place`.
  void (*forward[activation_count])(const View& out, const View& x, const ActivationParameters& parameters);
  /// d f'(x; parameters).
  void (*gradient[activation_count])(const View& out, const View& d, const View& x,
                                     const ActivationParameters& parameters);
  /// Softmax over those elements of the last axis where the mask, which broadcasts, is true; elsewhere 0, or −∞.
  KernelTable::BinaryKernel masked_softmax;
  KernelTable::BinaryKernel masked_log_softmax;
};

}  // namespace reel::detail
