#include "arithmetic.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

// Frequent exponents are computed without logarithms. If a single number is the exponent, no warp diverges.
struct Pow {
  template <class V>
  REEL_DEVICE V operator()(V a, V b) const {
    if (b == V(2)) return formulas::Square()(a);
    if (b == V(3)) return formulas::Cube()(a);
    if (b == V(0.5)) return formulas::RootPower()(a);
    if (b == V(-1)) return formulas::Reciprocal()(a);
    return formulas::Pow()(a, b);
  }
};

}  // namespace

template <>
struct DeviceFormula<formulas::Pow> {
  using type = Pow;
};

void fill_powers(KernelTable& table) { fill_binary_kernels(table, RowsOf<kernel_lists::BinaryArithmetic, Powers>()); }

}  // namespace REEL_TARGET
}  // namespace reel::detail
