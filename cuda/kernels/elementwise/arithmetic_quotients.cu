#include "arithmetic.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_quotients(KernelTable& table) {
  fill_binary_kernels(table, RowsOf<kernel_lists::BinaryArithmetic, Quotients>());
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
