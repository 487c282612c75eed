#include "../../device/formula_loop.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

template <class F>
struct BinaryComparison {
  template <class Row>
  static constexpr KernelTable::BinaryKernel kernel = row_kernel<Row>;
};
// No instances of their own: the operands are exchanged instead.
template <class F>
struct BinaryComparison<formulas::Reversed<F>> {
  template <class Row>
  static void kernel(const View& out, const View& a, const View& b) {
    row_kernel<ElementwiseRow<F, Row::operands, Row::cost>>(out, b, a);
  }
};

template <class... Rows>
void fill_binary_comparisons(KernelTable& table, KernelList<Rows...>) {
  ((table.binary[binary_place<typename Rows::Formula>] =
        BinaryComparison<typename Rows::Formula>::template kernel<Rows>),
   ...);
}

struct Choice {
  template <class T>
  REEL_DEVICE T operator()(bool condition, T a, T b) const {
    return condition ? a : b;
  }
};

// Only bits are moved, so one instance serves all dtypes of a size.
void where_kernel(const View& out, const View& condition, const View& a, const View& b) {
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) {
    run_formula<T, bool, T, T>(Choice(), out, {&condition, &a, &b});
  });
}

}  // namespace

void fill_comparison(KernelTable& table) {
  fill_unary_kernels(table, kernel_lists::UnaryComparison());
  fill_binary_comparisons(table, kernel_lists::BinaryComparison());
  table.where = where_kernel;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
