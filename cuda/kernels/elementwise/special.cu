#include "../../../lib/kernels/formulas/special.h"

#include "../../device/formula_loop.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

// Too many digits are lost for f32 throughout.
template <class F>
struct InDouble {
  template <class V>
  REEL_DEVICE V operator()(V x) const {
    return static_cast<V>(F()(static_cast<double>(x)));
  }
};

}  // namespace

void fill_special(KernelTable& table) {
  namespace f = formulas;
  auto slot = [&](Unary op) -> KernelTable::UnaryKernel& { return table.unary[static_cast<int>(op)]; };
  slot(Unary::erf) = floating_unary<f::Erf>;
  slot(Unary::erfinv) = floating_unary<f::Erfinv>;
  slot(Unary::lgamma) = floating_unary<InDouble<f::Lgamma>>;
  slot(Unary::digamma) = floating_unary<InDouble<f::Digamma>>;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
