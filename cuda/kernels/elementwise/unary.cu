#include "../../device/formula_loop.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_unary(KernelTable& table) { fill_unary_kernels(table, kernel_lists::UnaryArithmetic()); }

}  // namespace REEL_TARGET
}  // namespace reel::detail
