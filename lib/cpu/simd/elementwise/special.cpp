#include "../../../kernels/formulas/special.h"

#include "../vector/formula_loop.h"
#include "../vector/vector_special.h"
#include "elementwise.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

// Too many digits are lost for f32 throughout.
struct WideDigamma {
  Vector<float> operator()(Vector<float> x) const { return in_double(x, formulas::Digamma()); }
  Vector<double> operator()(Vector<double> x) const { return formulas::Digamma()(x); }
};

}  // namespace

void fill_special(KernelTable& table) {
  namespace f = formulas;
  auto slot = [&](Unary op) -> KernelTable::UnaryKernel& { return table.unary[static_cast<int>(op)]; };
  slot(Unary::erf) = floating_unary<f::Erf, dear>;
  slot(Unary::erfinv) = floating_unary<f::Erfinv, slow>;
  slot(Unary::lgamma) = floating_unary<f::Lgamma, slow>;
  slot(Unary::digamma) = floating_unary<WideDigamma, slow>;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
