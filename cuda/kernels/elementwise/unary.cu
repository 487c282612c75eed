#include "unary.h"

#include "../../runtime/cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_unary(KernelTable& table) {
  fill_unary_kernels(table, RowsWithout<kernel_lists::UnaryArithmetic, Rounding>());
  fill_rounding(table);
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
