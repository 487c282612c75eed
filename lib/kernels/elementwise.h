#pragma once

#include <cstdint>
#include <type_traits>

#include "../core/target.h"

// The elementwise kernels of every device. A row of these lists declares a formula, and its place is the place of the
// formula's kernel in the tables, so that an op names its kernel by the formula. The formulas' bodies are in formulas/,
// which only files with kernels include.

namespace reel::detail {

/// The dtypes of a kernel's operands, and of its result, which is theirs unless they are compared.
enum class Operands : std::uint8_t {
  floating,
  numbers,            ///< floating, or integers by the formula for integers
  numbers_and_bools,  ///< bools by the formula for integers, too
  integers,           ///< integers only
  integers_and_bools,
  compared,           ///< all; the result is bool
  floating_compared,  ///< floating; the result is bool
};

/// The cost of an element on a CPU, which decides how many elements are worth a second thread: less than 0.4 ns, some 1 ns,
/// or more than 2 ns.
enum class Cost : std::uint8_t { cheap, dear, slow };

}  // namespace reel::detail

namespace reel::detail::inline REEL_TARGET {

template <class F, Operands operands_, Cost cost_, class IntegerF = F>
struct ElementwiseRow {
  using Formula = F;
  using IntegerFormula = IntegerF;
  static constexpr Operands operands = operands_;
  static constexpr Cost cost = cost_;
};

/// An activation function of an element and up to two parameters, with its gradient: f(x, …) and g(d, x, …).
template <class F, class G, int parameters_, Cost cost_>
struct ActivationRow {
  using Formula = F;
  using Gradient = G;
  static constexpr int parameters = parameters_;
  static constexpr Cost cost = cost_;
};

template <class... Rows>
struct KernelList {
  static constexpr int count = sizeof...(Rows);
};

}  // namespace reel::detail::inline REEL_TARGET

namespace reel::formulas::inline REEL_TARGET {

using enum detail::Operands;
using enum detail::Cost;
using detail::KernelList, detail::ActivationRow;
template <class F, detail::Operands operands, detail::Cost cost, class IntegerF = F>
using Row = detail::ElementwiseRow<F, operands, cost, IntegerF>;

template <class F>
struct Wrapping;

// clang-format off
using UnaryRows = KernelList<
    Row<struct Neg, numbers, cheap, struct WrappingNeg>,
    Row<struct Abs, numbers, cheap, struct WrappingAbs>,
    Row<struct Sign, numbers, cheap, struct IntegerSign>,
    Row<struct Square, numbers, cheap, struct WrappingSquare>,
    Row<struct Relu, numbers, cheap>,
    Row<struct Floor, numbers, cheap, struct Itself>,
    Row<struct Ceil, numbers, cheap, struct Itself>,
    Row<struct Round, numbers, cheap, struct Itself>,
    Row<struct Trunc, numbers, cheap, struct Itself>,
    Row<struct Reciprocal, floating, cheap>,
    Row<struct Sqrt, floating, cheap>,
    Row<struct Rsqrt, floating, cheap>,

    Row<struct Exp, floating, dear>,
    Row<struct Expm1, floating, dear>,
    Row<struct Log, floating, dear>,
    Row<struct Log1p, floating, dear>,
    Row<struct Log2, floating, dear>,
    Row<struct Sinh, floating, dear>,
    Row<struct Cosh, floating, dear>,
    Row<struct Tanh, floating, dear>,
    Row<struct Sigmoid, floating, dear>,
    Row<struct Exp2, floating, dear>,
    Row<struct Log10, floating, dear>,
    Row<struct Asinh, floating, dear>,
    Row<struct Acosh, floating, dear>,
    Row<struct Atanh, floating, dear>,
    Row<struct Logit, floating, dear>,

    Row<struct Sin, floating, dear>,
    Row<struct Cos, floating, dear>,
    Row<struct Tan, floating, dear>,
    Row<struct Asin, floating, dear>,
    Row<struct Acos, floating, dear>,
    Row<struct Atan, floating, dear>,
    Row<struct Sinc, floating, dear>,

    Row<struct Erf, floating, dear>,
    Row<struct Erfinv, floating, slow>,
    Row<struct Lgamma, floating, slow>,
    Row<struct Digamma, floating, slow>,
    Row<struct Erfc, floating, slow>,
    Row<struct I0, floating, slow>,
    Row<struct I1, floating, slow>,

    Row<struct LogicalNot, compared, cheap>,
    Row<struct IsNan, floating_compared, cheap>,
    Row<struct IsInfinite, floating_compared, cheap>,
    Row<struct IsFinite, floating_compared, cheap>>;

using BinaryRows = KernelList<
    Row<struct Add, numbers_and_bools, cheap, Wrapping<Add>>,
    Row<struct Sub, numbers, cheap, Wrapping<Sub>>,
    Row<struct Mul, numbers_and_bools, cheap, Wrapping<Mul>>,
    Row<struct Div, floating, cheap>,
    Row<struct Maximum, numbers_and_bools, cheap>,
    Row<struct Minimum, numbers_and_bools, cheap>,
    Row<struct TanhGradient, floating, cheap>,
    Row<struct SigmoidGradient, floating, cheap>,
    Row<struct ReluGradient, floating, cheap>,
    Row<struct FloorDivide, numbers, dear, struct IntegerQuotient>,
    Row<struct Mod, numbers, dear, struct IntegerMod>,
    Row<struct Pow, numbers, slow, struct IntegerPow>,
    Row<struct Logaddexp, floating, dear>,
    Row<struct Atan2, floating, dear>,

    Row<struct Equal, compared, cheap>,
    Row<struct NotEqual, compared, cheap>,
    Row<struct Less, compared, cheap>,
    Row<struct LessEqual, compared, cheap>,
    Row<struct LogicalAnd, compared, cheap>,
    Row<struct LogicalOr, compared, cheap>,
    Row<struct LogicalXor, compared, cheap>,

    Row<struct BitwiseAnd, integers_and_bools, cheap>,
    Row<struct BitwiseOr, integers_and_bools, cheap>,
    Row<struct BitwiseXor, integers_and_bools, cheap>,
    Row<struct LeftShift, integers, cheap>,
    Row<struct RightShift, integers, cheap>>;

using ActivationRows = KernelList<
    ActivationRow<struct LeakyRelu, struct LeakyReluGradient, 1, cheap>,
    ActivationRow<struct Gelu, struct GeluGradient, 0, dear>,
    ActivationRow<struct TanhGelu, struct TanhGeluGradient, 0, dear>,
    ActivationRow<struct Silu, struct SiluGradient, 0, dear>,
    ActivationRow<struct Elu, struct EluGradient, 2, dear>,
    ActivationRow<struct Softplus, struct SoftplusGradient, 2, dear>,
    ActivationRow<struct Clamp, struct HardtanhGradient, 2, cheap>,
    ActivationRow<struct Mish, struct MishGradient, 0, dear>,
    ActivationRow<struct Hardswish, struct HardswishGradient, 0, cheap>,
    ActivationRow<struct Softsign, struct SoftsignGradient, 0, cheap>,
    ActivationRow<struct Hardsigmoid, struct HardsigmoidGradient, 0, cheap>,
    ActivationRow<struct Hardshrink, struct ShrinkGradient, 1, cheap>,
    ActivationRow<struct Softshrink, struct ShrinkGradient, 1, cheap>>;
// clang-format on

}  // namespace reel::formulas::inline REEL_TARGET

namespace reel::detail::inline REEL_TARGET {

template <class F, class... Rows>
constexpr int find_kernel(KernelList<Rows...>) {
  constexpr bool is_it[] = {std::is_same_v<F, typename Rows::Formula>...};
  int place = -1, rows = 0;
  for (int i = 0; i < static_cast<int>(sizeof...(Rows)); ++i)
    if (is_it[i]) place = i, ++rows;
  return rows == 1 ? place : -1;
}

/// The place of a formula's kernel in KernelTable::unary, in KernelTable::binary, and in ActivationKernels.
template <class F>
inline constexpr int unary_place = [] {
  constexpr int place = find_kernel<F>(formulas::UnaryRows());
  static_assert(place >= 0, "the formula must be in one row of UnaryRows");
  return place;
}();
template <class F>
inline constexpr int binary_place = [] {
  constexpr int place = find_kernel<F>(formulas::BinaryRows());
  static_assert(place >= 0, "the formula must be in one row of BinaryRows");
  return place;
}();
template <class F>
inline constexpr int activation_place = [] {
  constexpr int place = find_kernel<F>(formulas::ActivationRows());
  static_assert(place >= 0, "the formula must be in one row of ActivationRows");
  return place;
}();

}  // namespace reel::detail::inline REEL_TARGET

namespace reel::detail {

constexpr int unary_count = formulas::UnaryRows::count, binary_count = formulas::BinaryRows::count,
              activation_count = formulas::ActivationRows::count;

}  // namespace reel::detail
