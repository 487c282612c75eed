#include "cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_device_kernels(KernelTable&) {
  // One line each, by name: fill_activation(table); …
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
