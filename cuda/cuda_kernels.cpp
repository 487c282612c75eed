#include "cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_device_kernels(KernelTable& table) {
  fill_argmax(table);
  fill_mapped_sums(table);
  fill_reduce(table);
  fill_scan(table);
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
