#include "comparison.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_logic(KernelTable& table) { fill_binary_comparisons(table, RowsOf<kernel_lists::BinaryComparison, Logic>()); }

}  // namespace REEL_TARGET
}  // namespace reel::detail
