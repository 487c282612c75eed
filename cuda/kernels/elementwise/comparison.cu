#include "../../../lib/kernels/formulas/comparison.h"

#include "../../device/formula_loop.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

template <class F>
void comparison(const View& out, const View& a, const View& b) {
  with_type(a.dtype, [&]<class T>(std::type_identity<T>) { run_formula<bool, T, T>(F(), out, {&a, &b}); });
}

template <class F>
void reversed_comparison(const View& out, const View& a, const View& b) {
  comparison<F>(out, b, a);
}

template <class F>
void predicate(const View& out, const View& x) {
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) { run_formula<bool, T>(F(), out, {&x}); });
}

// For integers the op computes the result without a kernel.
template <class F>
void floating_predicate(const View& out, const View& x) {
  with_floating(x.dtype, [&]<class T>(std::type_identity<T>) { run_formula<bool, T>(F(), out, {&x}); });
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
