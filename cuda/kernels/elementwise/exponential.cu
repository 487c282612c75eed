#include "../../../lib/kernels/formulas/unary.h"
#include "../../device/formula_loop.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_exponential(KernelTable& table) {
  namespace f = formulas;
  auto slot = [&](Unary op) -> KernelTable::UnaryKernel& { return table.unary[static_cast<int>(op)]; };
  slot(Unary::exp) = floating_unary<f::Exp>;
  slot(Unary::expm1) = floating_unary<f::Expm1>;
  slot(Unary::log) = floating_unary<f::Log>;
  slot(Unary::log1p) = floating_unary<f::Log1p>;
  slot(Unary::log2) = floating_unary<f::Log2>;
  slot(Unary::sinh) = floating_unary<f::Sinh>;
  slot(Unary::cosh) = floating_unary<f::Cosh>;
  slot(Unary::tanh) = floating_unary<f::Tanh>;
  slot(Unary::sigmoid) = floating_unary<f::Sigmoid>;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
