#include "../vector/formula_loop.h"
#include "../vector/vector_exponential.h"
#include "elementwise.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_exponential(KernelTable& table) { fill_unary_kernels(table, kernel_lists::Exponential()); }

}  // namespace REEL_TARGET
}  // namespace reel::detail
