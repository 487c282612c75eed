#include "cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_device_kernels(KernelTable& table) {
  // One line each, by name.
  fill_embedding(table);
  fill_index(table);
  fill_pool(table);
  fill_resample(table);
  fill_sparse(table);
  fill_attention(table);
  fill_convolve(table);
  fill_linear_algebra(table);
  fill_matmul(table);
  fill_loss(table);
  fill_normalise(table);
  fill_recurrent(table);
  fill_softmax(table);
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
