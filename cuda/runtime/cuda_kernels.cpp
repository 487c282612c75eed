#include "cuda_kernels.h"

namespace reel::detail::inline REEL_TARGET {

void fill_device_kernels(KernelTable& table) {
  fill_anomaly(table);
  fill_argmax(table);
  fill_attention(table);
  fill_concat(table);
  fill_convolution(table);
  fill_copy(table);
  fill_create(table);
  fill_elementwise(table);
  fill_embedding(table);
  fill_index(table);
  fill_linear_algebra(table);
  fill_loss(table);
  fill_statistics(table);
  fill_matmul(table);
  fill_median(table);
  fill_nonzero(table);
  fill_normalise(table);
  fill_polygamma(table);
  fill_pooling(table);
  fill_random(table);
  fill_randperm(table);
  fill_recurrent(table);
  fill_reduce(table);
  fill_resample(table);
  fill_sampling(table);
  fill_scan(table);
  fill_softmax(table);
  fill_sort(table);
  fill_sparse(table);
  fill_ternary(table);
}

}  // namespace reel::detail::inline REEL_TARGET
