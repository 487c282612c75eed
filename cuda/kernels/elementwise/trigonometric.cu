#include "../../../lib/kernels/formulas/binary.h"
#include "../../../lib/kernels/formulas/unary.h"
#include "../../device/formula_loop.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_trigonometric(KernelTable& table) {
  namespace f = formulas;
  auto slot = [&](Unary op) -> KernelTable::UnaryKernel& { return table.unary[static_cast<int>(op)]; };
  slot(Unary::sin) = floating_unary<f::Sin>;
  slot(Unary::cos) = floating_unary<f::Cos>;
  slot(Unary::tan) = floating_unary<f::Tan>;
  slot(Unary::asin) = floating_unary<f::Asin>;
  slot(Unary::acos) = floating_unary<f::Acos>;
  slot(Unary::atan) = floating_unary<f::Atan>;
  table.binary[static_cast<int>(Binary::atan2)] = floating_binary<f::Atan2>;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
