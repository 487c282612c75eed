#include "../../../kernels/formulas/unary.h"
#include "../vector/formula_loop.h"
#include "../vector/vector_exponential.h"
#include "elementwise.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_exponential(KernelTable& table) {
  namespace f = formulas;
  auto slot = [&](Unary op) -> KernelTable::UnaryKernel& { return table.unary[static_cast<int>(op)]; };
  slot(Unary::exp) = floating_unary<f::Exp, dear>;
  slot(Unary::expm1) = floating_unary<f::Expm1, dear>;
  slot(Unary::log) = floating_unary<f::Log, dear>;
  slot(Unary::log1p) = floating_unary<f::Log1p, dear>;
  slot(Unary::log2) = floating_unary<f::Log2, dear>;
  slot(Unary::sinh) = floating_unary<f::Sinh, dear>;
  slot(Unary::cosh) = floating_unary<f::Cosh, dear>;
  slot(Unary::tanh) = floating_unary<f::Tanh, dear>;
  slot(Unary::sigmoid) = floating_unary<f::Sigmoid, dear>;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
