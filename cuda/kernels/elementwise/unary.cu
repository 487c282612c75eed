#include "../../../lib/kernels/formulas/unary.h"

#include "../../../lib/kernels/formulas/integer.h"
#include "../../device/formula_loop.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

template <class F, class IntegerF>
void any_unary(const View& out, const View& x) {
  run_number<F, IntegerF>(out, x);
}

}  // namespace

void fill_unary(KernelTable& table) {
  namespace f = formulas;
  auto slot = [&](Unary op) -> KernelTable::UnaryKernel& { return table.unary[static_cast<int>(op)]; };
  slot(Unary::neg) = any_unary<f::Neg, f::WrappingNeg>;
  slot(Unary::abs) = any_unary<f::Abs, f::WrappingAbs>;
  slot(Unary::sign) = any_unary<f::Sign, f::IntegerSign>;
  slot(Unary::square) = any_unary<f::Square, f::WrappingSquare>;
  slot(Unary::relu) = any_unary<f::Relu, f::Relu>;
  slot(Unary::floor) = any_unary<f::Floor, f::Itself>;
  slot(Unary::ceil) = any_unary<f::Ceil, f::Itself>;
  slot(Unary::round) = any_unary<f::Round, f::Itself>;
  slot(Unary::reciprocal) = floating_unary<f::Reciprocal>;
  slot(Unary::sqrt) = floating_unary<f::Sqrt>;
  slot(Unary::rsqrt) = floating_unary<f::Rsqrt>;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
