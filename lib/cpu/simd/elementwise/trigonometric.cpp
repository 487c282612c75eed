#include "../vector/formula_loop.h"
#include "../vector/vector_trigonometric.h"
#include "elementwise.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_trigonometric(KernelTable& table) { fill_unary_kernels(table, kernel_lists::Trigonometric()); }

}  // namespace REEL_TARGET
}  // namespace reel::detail
