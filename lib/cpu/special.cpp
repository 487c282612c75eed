#include "../ops/formulas/special.h"

#include "elementwise.h"
#include "formula_loop.h"
#include "vector_special.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

// Too many digits are lost on its way for f32 throughout.
struct WideDigamma {
  Vector<float> operator()(Vector<float> x) const { return in_double(x, formulas::Digamma()); }
  Vector<double> operator()(Vector<double> x) const { return formulas::Digamma()(x); }
};

}  // namespace

void fill_special(KernelTable& table) {
  namespace f = formulas;
  auto slot = [&](Unary op) -> KernelTable::UnaryKernel& { return table.unary[static_cast<int>(op)]; };
  slot(Unary::erf) = floating_unary<f::Erf, dear>;
  slot(Unary::erfinv) = floating_unary<f::Erfinv, dear>;
  slot(Unary::lgamma) = floating_unary<f::Lgamma, dear>;
  slot(Unary::digamma) = floating_unary<WideDigamma, dear>;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
