#include "unary.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_rounding(KernelTable& table) { fill_unary_kernels(table, RowsOf<kernel_lists::UnaryArithmetic, Rounding>()); }

}  // namespace REEL_TARGET
}  // namespace reel::detail
