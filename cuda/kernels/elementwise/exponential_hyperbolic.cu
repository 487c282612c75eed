#include "exponential.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_hyperbolic(KernelTable& table) { fill_unary_kernels(table, RowsOf<kernel_lists::Exponential, Hyperbolic>()); }

}  // namespace REEL_TARGET
}  // namespace reel::detail
