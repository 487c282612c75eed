#include "exponential.h"

#include "../../runtime/cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_exponential(KernelTable& table) {
  fill_unary_kernels(table, RowsWithout<kernel_lists::Exponential, Hyperbolic>());
  fill_hyperbolic(table);
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
