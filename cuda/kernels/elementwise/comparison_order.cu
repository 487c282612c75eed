#include "comparison.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_order(KernelTable& table) { fill_binary_comparisons(table, RowsOf<kernel_lists::BinaryComparison, Order>()); }

}  // namespace REEL_TARGET
}  // namespace reel::detail
