#include "../../device/formula_loop.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

template <class F>
struct InDouble {
  template <class V>
  REEL_DEVICE V operator()(V x) const {
    return static_cast<V>(F()(static_cast<double>(x)));
  }
};

}  // namespace

// Too many digits are lost for f32 throughout.
template <>
struct DeviceFormula<formulas::Lgamma> {
  using type = InDouble<formulas::Lgamma>;
};
template <>
struct DeviceFormula<formulas::Digamma> {
  using type = InDouble<formulas::Digamma>;
};

void fill_special(KernelTable& table) { fill_unary_kernels(table, kernel_lists::Special()); }

}  // namespace REEL_TARGET
}  // namespace reel::detail
