#include "comparison.h"

#include "../../runtime/cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

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
  fill_binary_comparisons(table, RowsWithout<kernel_lists::BinaryComparison, AnyOf<Logic, Order>>());
  fill_logic(table);
  fill_order(table);
  table.where = where_kernel;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
