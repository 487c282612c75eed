#pragma once

#include <cstdint>
#include <type_traits>

#include "formulas/activation.h"
#include "formulas/binary.h"
#include "formulas/comparison.h"
#include "formulas/integer.h"
#include "formulas/special.h"
#include "formulas/unary.h"

// The elementwise kernels of every device. An op names its kernel by the formula, whose place in these lists is the
// kernel's place in the tables; each device makes its kernels from the rows.

namespace reel::detail {

/// The dtypes of a kernel's operands, and of its result, which is theirs unless they are compared.
enum class Operands : std::uint8_t {
  floating,
  numbers,            ///< floating, or integers by the formula for integers
  numbers_and_bools,  ///< bools by the formula for integers, too
  compared,           ///< all; the result is bool
  floating_compared,  ///< floating; the result is bool
};

/// What an element costs on a CPU, which decides how many must be to wake a second thread: less than 0.4 ns, some 1 ns,
/// or more than 2 ns.
enum class Cost : std::uint8_t { cheap, dear, slow };

inline namespace REEL_TARGET {

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
template <class... A, class... B>
KernelList<A..., B...> operator+(KernelList<A...>, KernelList<B...>);

namespace kernel_lists {

using namespace formulas;
using enum Operands;
using enum Cost;
template <class F, Operands operands, Cost cost, class IntegerF = F>
using Row = ElementwiseRow<F, operands, cost, IntegerF>;

// clang-format off
using UnaryArithmetic = KernelList<
    Row<Neg, numbers, cheap, WrappingNeg>,
    Row<Abs, numbers, cheap, WrappingAbs>,
    Row<Sign, numbers, cheap, IntegerSign>,
    Row<Square, numbers, cheap, WrappingSquare>,
    Row<Relu, numbers, cheap>,
    Row<Floor, numbers, cheap, Itself>,
    Row<Ceil, numbers, cheap, Itself>,
    Row<Round, numbers, cheap, Itself>,
    Row<Reciprocal, floating, cheap>,
    Row<Sqrt, floating, cheap>,
    Row<Rsqrt, floating, cheap>>;

using Exponential = KernelList<
    Row<Exp, floating, dear>,
    Row<Expm1, floating, dear>,
    Row<Log, floating, dear>,
    Row<Log1p, floating, dear>,
    Row<Log2, floating, dear>,
    Row<Sinh, floating, dear>,
    Row<Cosh, floating, dear>,
    Row<Tanh, floating, dear>,
    Row<Sigmoid, floating, dear>>;

using Trigonometric = KernelList<
    Row<Sin, floating, dear>,
    Row<Cos, floating, dear>,
    Row<Tan, floating, dear>,
    Row<Asin, floating, dear>,
    Row<Acos, floating, dear>,
    Row<Atan, floating, dear>>;

using Special = KernelList<
    Row<Erf, floating, dear>,
    Row<Erfinv, floating, slow>,
    Row<Lgamma, floating, slow>,
    Row<Digamma, floating, slow>>;

using UnaryComparison = KernelList<
    Row<LogicalNot, compared, cheap>,
    Row<IsNan, floating_compared, cheap>,
    Row<IsInfinite, floating_compared, cheap>,
    Row<IsFinite, floating_compared, cheap>>;

using BinaryArithmetic = KernelList<
    Row<Add, numbers_and_bools, cheap, Wrapping<Add>>,
    Row<Sub, numbers, cheap, Wrapping<Sub>>,
    Row<Mul, numbers_and_bools, cheap, Wrapping<Mul>>,
    Row<Div, floating, cheap>,
    Row<Maximum, numbers_and_bools, cheap>,
    Row<Minimum, numbers_and_bools, cheap>,
    Row<TanhGradient, floating, cheap>,
    Row<SigmoidGradient, floating, cheap>,
    Row<ReluGradient, floating, cheap>,
    Row<FloorDivide, numbers, dear, IntegerQuotient>,
    Row<Mod, numbers, dear, IntegerMod>,
    Row<Pow, numbers, slow, IntegerPow>,
    Row<Logaddexp, floating, dear>,
    Row<Atan2, floating, dear>>;

using BinaryComparison = KernelList<
    Row<Equal, compared, cheap>,
    Row<NotEqual, compared, cheap>,
    Row<Less, compared, cheap>,
    Row<LessEqual, compared, cheap>,
    Row<Reversed<Less>, compared, cheap>,
    Row<Reversed<LessEqual>, compared, cheap>,
    Row<LogicalAnd, compared, cheap>,
    Row<LogicalOr, compared, cheap>,
    Row<LogicalXor, compared, cheap>>;

using Activations = KernelList<
    ActivationRow<LeakyRelu, LeakyReluGradient, 1, cheap>,
    ActivationRow<Gelu, GeluGradient, 0, dear>,
    ActivationRow<TanhGelu, TanhGeluGradient, 0, dear>,
    ActivationRow<Silu, SiluGradient, 0, dear>,
    ActivationRow<Elu, EluGradient, 2, dear>,
    ActivationRow<Softplus, SoftplusGradient, 2, dear>,
    ActivationRow<Clamp, HardtanhGradient, 2, cheap>>;
// clang-format on

using Unary = decltype(UnaryArithmetic() + Exponential() + Trigonometric() + Special() + UnaryComparison());
using Binary = decltype(BinaryArithmetic() + BinaryComparison());

}  // namespace kernel_lists

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
  constexpr int place = find_kernel<F>(kernel_lists::Unary());
  static_assert(place >= 0, "the formula must be in one row of kernel_lists::Unary");
  return place;
}();
template <class F>
inline constexpr int binary_place = [] {
  constexpr int place = find_kernel<F>(kernel_lists::Binary());
  static_assert(place >= 0, "the formula must be in one row of kernel_lists::Binary");
  return place;
}();
template <class F>
inline constexpr int activation_place = [] {
  constexpr int place = find_kernel<F>(kernel_lists::Activations());
  static_assert(place >= 0, "the formula must be in one row of kernel_lists::Activations");
  return place;
}();

}  // namespace REEL_TARGET

constexpr int unary_count = kernel_lists::Unary::count, binary_count = kernel_lists::Binary::count,
              activation_count = kernel_lists::Activations::count;

}  // namespace reel::detail
