#include "elementwise.h"

#include "../instruction_set.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_elementwise(KernelTable& table) {
  fill_unary(table);
  fill_exponential(table);
  fill_trigonometric(table);
  fill_special(table);
  fill_arithmetic(table);
  fill_comparison(table);
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
