#include "../vector/formula_loop.h"
#include "../vector/vector_special.h"
#include "elementwise.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

struct WideDigamma {
  Vector<float> operator()(Vector<float> x) const { return in_double(x, formulas::Digamma()); }
  Vector<double> operator()(Vector<double> x) const { return formulas::Digamma()(x); }
};

}  // namespace

// Too many digits are lost for f32 throughout.
template <>
struct VectorFormula<formulas::Digamma> {
  using type = WideDigamma;
};

void fill_special(KernelTable& table) { fill_unary_kernels(table, kernel_lists::Special()); }

}  // namespace REEL_TARGET
}  // namespace reel::detail
