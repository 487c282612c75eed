#include "../vector/formula_loop.h"
#include "elementwise.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

template <class F>
struct BinaryComparison {
  static constexpr KernelTable::BinaryKernel kernel = comparison<F>;
};
// No instances of their own: the operands are exchanged instead.
template <class F>
struct BinaryComparison<formulas::Reversed<F>> {
  static void kernel(const View& out, const View& a, const View& b) { comparison<F>(out, b, a); }
};

template <class... Rows>
void fill_binary_comparisons(KernelTable& table, KernelList<Rows...>) {
  ((table.binary[binary_place<typename Rows::Formula>] = BinaryComparison<typename Rows::Formula>::kernel), ...);
}

template <class T>
void where_loop(void* out, const void* const* inputs, std::int64_t count) {
  auto* y = static_cast<T*>(out);
  auto* condition = static_cast<const bool*>(inputs[0]);
  auto* a = static_cast<const T*>(inputs[1]);
  auto* b = static_cast<const T*>(inputs[2]);
  // Masks instead of branches, which are slow if the condition has no pattern.
  for (std::int64_t i = 0; i < count; ++i)
    y[i] = static_cast<T>(b[i] ^ ((a[i] ^ b[i]) & static_cast<T>(-static_cast<T>(condition[i]))));
}

// Only bits are moved, so one instance serves all dtypes of a size.
void where_kernel(const View& out, const View& condition, const View& a, const View& b) {
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) {
    run_loop(out, {&condition, &a, &b}, where_loop<T>, {.widens = false});
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
