#include "cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_device_kernels(KernelTable& table) {
  // One line each, by name.
  fill_activation(table);
  fill_arithmetic(table);
  fill_comparison(table);
  fill_concat(table);
  fill_copy(table);
  fill_create(table);
  fill_exponential(table);
  fill_polygamma(table);
  fill_random(table);
  fill_special(table);
  fill_trigonometric(table);
  fill_unary(table);
  fill_anomaly(table);
  fill_argmax(table);
  fill_mapped_sums(table);
  fill_median(table);
  fill_nonzero(table);
  fill_randperm(table);
  fill_reduce(table);
  fill_sample(table);
  fill_scan(table);
  fill_sort(table);
  fill_attention(table);
  fill_convolve(table);
  fill_linear_algebra(table);
  fill_matmul(table);
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
