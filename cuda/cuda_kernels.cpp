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
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
