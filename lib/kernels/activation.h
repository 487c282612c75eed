#pragma once

#include "kernel_table.h"

namespace reel::detail {

struct ActivationKernels {
  /// y = f(x; first, second), by `activation_place`.
  void (*forward[activation_count])(const View& out, const View& x, double first, double second);
  /// d f'(x; first, second).
  void (*gradient[activation_count])(const View& out, const View& d, const View& x, double first, double second);
  /// Softmax over those elements of the last axis where the mask, which broadcasts, is true; elsewhere 0, or −∞.
  KernelTable::BinaryKernel masked_softmax;
  KernelTable::BinaryKernel masked_log_softmax;
};

}  // namespace reel::detail
