#include "../../../kernels/formulas/comparison.h"

#include "../vector/formula_loop.h"
#include "elementwise.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

template <class F>
void reversed_comparison(const View& out, const View& a, const View& b) {
  comparison<F>(out, b, a);
}

// For integers the op computes the result without a kernel.
template <class F>
void floating_predicate(const View& out, const View& x) {
  run_loop(out, {&x}, x.dtype == DType::f64 ? scalar_loop_1<F, bool, double> : scalar_loop_1<F, bool, float>);
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
  namespace f = formulas;
  auto binary = [&](Binary op) -> KernelTable::BinaryKernel& { return table.binary[static_cast<int>(op)]; };
  binary(Binary::equal) = comparison<f::Equal>;
  binary(Binary::not_equal) = comparison<f::NotEqual>;
  binary(Binary::less) = comparison<f::Less>;
  binary(Binary::less_equal) = comparison<f::LessEqual>;
  binary(Binary::greater) = reversed_comparison<f::Less>;
  binary(Binary::greater_equal) = reversed_comparison<f::LessEqual>;
  binary(Binary::logical_and) = comparison<f::LogicalAnd>;
  binary(Binary::logical_or) = comparison<f::LogicalOr>;
  binary(Binary::logical_xor) = comparison<f::LogicalXor>;
  auto unary = [&](Unary op) -> KernelTable::UnaryKernel& { return table.unary[static_cast<int>(op)]; };
  unary(Unary::logical_not) = predicate<f::LogicalNot>;
  unary(Unary::isnan) = floating_predicate<f::IsNan>;
  unary(Unary::isinf) = floating_predicate<f::IsInfinite>;
  unary(Unary::isfinite) = floating_predicate<f::IsFinite>;
  table.where = where_kernel;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
