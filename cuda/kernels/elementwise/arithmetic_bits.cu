#include "arithmetic.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_bits(KernelTable& table) { fill_binary_kernels(table, kernel_lists::Bitwise()); }

}  // namespace REEL_TARGET
}  // namespace reel::detail
