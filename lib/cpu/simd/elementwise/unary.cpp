#include "../../../kernels/formulas/unary.h"

#include "../../../kernels/formulas/integer.h"
#include "../vector/formula_loop.h"
#include "../vector/vector_exponential.h"
#include "elementwise.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

template <class F, class IntegerF>
void any_unary(const View& out, const View& x) {
  switch (out.dtype) {
    case DType::i32: return run_loop(out, {&x}, scalar_loop_1<IntegerF, std::int32_t, std::int32_t>);
    case DType::i64: return run_loop(out, {&x}, scalar_loop_1<IntegerF, std::int64_t, std::int64_t>);
    case DType::u8: return run_loop(out, {&x}, scalar_loop_1<IntegerF, std::uint8_t, std::uint8_t>);
    default: return floating_unary<F, cheap>(out, x);
  }
}

}  // namespace

void fill_unary(KernelTable& table) {
  namespace f = formulas;
  auto slot = [&](Unary op) -> KernelTable::UnaryKernel& { return table.unary[static_cast<int>(op)]; };
  slot(Unary::neg) = any_unary<f::Neg, f::WrappingNeg>;
  slot(Unary::abs) = any_unary<f::Abs, f::WrappingAbs>;
  slot(Unary::sign) = any_unary<f::Sign, f::IntegerSign>;
  slot(Unary::square) = any_unary<f::Square, f::WrappingSquare>;
  slot(Unary::relu) = any_unary<f::Relu, f::Relu>;
  slot(Unary::floor) = any_unary<f::Floor, f::Itself>;
  slot(Unary::ceil) = any_unary<f::Ceil, f::Itself>;
  slot(Unary::round) = any_unary<f::Round, f::Itself>;
  slot(Unary::reciprocal) = floating_unary<f::Reciprocal, cheap>;
  slot(Unary::sqrt) = floating_unary<f::Sqrt, cheap>;
  slot(Unary::rsqrt) = floating_unary<f::Rsqrt, cheap>;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
