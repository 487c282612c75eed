#include "../ops/formulas/unary.h"

#include "elementwise.h"
#include "formula_loop.h"
#include "vector_exponential.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

// Overflow of signed integers wraps around, as everybody's does.
struct WrappingNeg {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(-static_cast<std::make_unsigned_t<T>>(x));
  }
};
struct WrappingAbs {
  template <class T>
  T operator()(T x) const {
    return x < T(0) ? WrappingNeg()(x) : x;
  }
};
struct WrappingSquare {
  template <class T>
  T operator()(T x) const {
    auto wide = static_cast<std::uint64_t>(x);
    return static_cast<T>(wide * wide);
  }
};
struct IntegerSign {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>((x > T(0)) - (x < T(0)));
  }
};
struct Itself {
  template <class T>
  T operator()(T x) const {
    return x;
  }
};

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
  slot(Unary::neg) = any_unary<f::Neg, WrappingNeg>;
  slot(Unary::abs) = any_unary<f::Abs, WrappingAbs>;
  slot(Unary::sign) = any_unary<f::Sign, IntegerSign>;
  slot(Unary::square) = any_unary<f::Square, WrappingSquare>;
  slot(Unary::relu) = any_unary<f::Relu, f::Relu>;
  slot(Unary::floor) = any_unary<f::Floor, Itself>;
  slot(Unary::ceil) = any_unary<f::Ceil, Itself>;
  slot(Unary::round) = any_unary<f::Round, Itself>;
  slot(Unary::reciprocal) = floating_unary<f::Reciprocal, cheap>;
  slot(Unary::sqrt) = floating_unary<f::Sqrt, cheap>;
  slot(Unary::rsqrt) = floating_unary<f::Rsqrt, cheap>;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
