#include "cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_device_kernels(KernelTable& table) {
  fill_loss(table);
  fill_normalise(table);
  fill_recurrent(table);
  fill_softmax(table);
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
