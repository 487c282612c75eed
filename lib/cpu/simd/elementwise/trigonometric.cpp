#include "../../../kernels/formulas/binary.h"
#include "../../../kernels/formulas/unary.h"
#include "../vector/formula_loop.h"
#include "../vector/vector_trigonometric.h"
#include "elementwise.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_trigonometric(KernelTable& table) {
  namespace f = formulas;
  auto slot = [&](Unary op) -> KernelTable::UnaryKernel& { return table.unary[static_cast<int>(op)]; };
  slot(Unary::sin) = floating_unary<f::Sin, dear>;
  slot(Unary::cos) = floating_unary<f::Cos, dear>;
  slot(Unary::tan) = floating_unary<f::Tan, dear>;
  slot(Unary::asin) = floating_unary<f::Asin, dear>;
  slot(Unary::acos) = floating_unary<f::Acos, dear>;
  slot(Unary::atan) = floating_unary<f::Atan, dear>;
  table.binary[static_cast<int>(Binary::atan2)] = floating_binary<f::Atan2, dear>;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
