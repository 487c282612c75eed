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

/// The grain size on a CPU: a second thread pays from few elements on (fine) where each takes more than 2 ns, from more
/// (medium) at some 1 ns, and from many (coarse) below 0.4 ns.
enum class Grain : std::uint8_t { coarse, medium, fine };

}  // namespace reel::detail

namespace reel::detail::inline REEL_TARGET {

template <class F, Operands operands_, Grain grain_, class IntegerF = F>
struct ElementwiseRow {
  using Formula = F;
  using IntegerFormula = IntegerF;
  static constexpr Operands operands = operands_;
  static constexpr Grain grain = grain_;
};

/// An activation function of an element and up to three parameters, with its gradient: f(x, …) and g(d, x, …).
template <class F, class G, int parameters_, Grain grain_, int gradient_parameters_ = parameters_>
struct ActivationRow {
  using Formula = F;
  using Gradient = G;
  static constexpr int parameters = parameters_, gradient_parameters = gradient_parameters_;
  static constexpr Grain grain = grain_;
};

template <class... Rows>
struct KernelList {
  static constexpr int count = sizeof...(Rows);
};

}  // namespace reel::detail::inline REEL_TARGET

namespace reel::formulas::inline REEL_TARGET {

using enum detail::Operands;
using enum detail::Grain;
using detail::KernelList, detail::ActivationRow;
template <class F, detail::Operands operands, detail::Grain grain, class IntegerF = F>
using Row = detail::ElementwiseRow<F, operands, grain, IntegerF>;

template <class F>
struct Wrapping;

// clang-format off
using UnaryRows = KernelList<
    Row<struct Neg, numbers, coarse, struct WrappingNeg>,
    Row<struct Abs, numbers, coarse, struct WrappingAbs>,
    Row<struct Sign, numbers, coarse, struct IntegerSign>,
    Row<struct Square, numbers, coarse, struct WrappingSquare>,
    Row<struct Relu, numbers, coarse>,
    Row<struct Floor, numbers, coarse, struct Itself>,
    Row<struct Ceil, numbers, coarse, struct Itself>,
    Row<struct Round, numbers, coarse, struct Itself>,
    Row<struct Trunc, numbers, coarse, struct Itself>,
    Row<struct Reciprocal, floating, coarse>,
    Row<struct Sqrt, floating, coarse>,
    Row<struct Rsqrt, floating, coarse>,

    Row<struct Exp, floating, medium>,
    Row<struct Expm1, floating, medium>,
    Row<struct Log, floating, medium>,
    Row<struct Log1p, floating, medium>,
    Row<struct Log2, floating, medium>,
    Row<struct Sinh, floating, medium>,
    Row<struct Cosh, floating, medium>,
    Row<struct Tanh, floating, medium>,
    Row<struct Sigmoid, floating, medium>,
    Row<struct Exp2, floating, medium>,
    Row<struct Log10, floating, medium>,
    Row<struct Asinh, floating, medium>,
    Row<struct Acosh, floating, medium>,
    Row<struct Atanh, floating, medium>,
    Row<struct Logit, floating, medium>,

    Row<struct Sin, floating, medium>,
    Row<struct Cos, floating, medium>,
    Row<struct Tan, floating, medium>,
    Row<struct Asin, floating, medium>,
    Row<struct Acos, floating, medium>,
    Row<struct Atan, floating, medium>,
    Row<struct Sinc, floating, medium>,

    Row<struct Erf, floating, medium>,
    Row<struct Erfinv, floating, fine>,
    Row<struct Lgamma, floating, fine>,
    Row<struct Digamma, floating, fine>,
    Row<struct Erfc, floating, fine>,
    Row<struct I0, floating, fine>,
    Row<struct I1, floating, fine>,

    Row<struct LogicalNot, compared, coarse>,
    Row<struct IsNan, floating_compared, coarse>,
    Row<struct IsInfinite, floating_compared, coarse>,
    Row<struct IsFinite, floating_compared, coarse>>;

using BinaryRows = KernelList<
    Row<struct Add, numbers_and_bools, coarse, Wrapping<Add>>,
    Row<struct Sub, numbers, coarse, Wrapping<Sub>>,
    Row<struct Mul, numbers_and_bools, coarse, Wrapping<Mul>>,
    Row<struct Div, floating, coarse>,
    Row<struct Maximum, numbers_and_bools, coarse>,
    Row<struct Minimum, numbers_and_bools, coarse>,
    Row<struct TanhGradient, floating, coarse>,
    Row<struct SigmoidGradient, floating, coarse>,
    Row<struct ReluGradient, floating, coarse>,
    Row<struct LeakyRelu, floating, coarse>,
    Row<struct PreluSlope, floating, coarse>,
    Row<struct FloorDivide, numbers, medium, struct IntegerQuotient>,
    Row<struct Mod, numbers, medium, struct IntegerMod>,
    Row<struct Fmod, numbers, medium, struct IntegerFmod>,
    Row<struct Pow, numbers, fine, struct IntegerPow>,
    Row<struct Logaddexp, floating, medium>,
    Row<struct Atan2, floating, medium>,

    Row<struct Equal, compared, coarse>,
    Row<struct NotEqual, compared, coarse>,
    Row<struct Less, compared, coarse>,
    Row<struct LessEqual, compared, coarse>,
    Row<struct LogicalAnd, compared, coarse>,
    Row<struct LogicalOr, compared, coarse>,
    Row<struct LogicalXor, compared, coarse>,

    Row<struct BitwiseAnd, integers_and_bools, coarse>,
    Row<struct BitwiseOr, integers_and_bools, coarse>,
    Row<struct BitwiseXor, integers_and_bools, coarse>,
    Row<struct LeftShift, integers, coarse>,
    Row<struct RightShift, integers, coarse>>;

using ActivationRows = KernelList<
    ActivationRow<struct LeakyRelu, struct LeakyReluGradient, 1, coarse>,
    ActivationRow<struct Gelu, struct GeluGradient, 0, medium>,
    ActivationRow<struct TanhGelu, struct TanhGeluGradient, 0, medium>,
    ActivationRow<struct Silu, struct SiluGradient, 0, medium>,
    ActivationRow<struct Elu, struct EluGradient, 3, medium>,
    ActivationRow<struct Softplus, struct SoftplusGradient, 2, medium>,
    ActivationRow<struct Clamp, struct HardtanhGradient, 2, coarse>,
    ActivationRow<struct Mish, struct MishGradient, 0, medium>,
    ActivationRow<struct Hardswish, struct HardswishGradient, 0, coarse>,
    ActivationRow<struct Softsign, struct SoftsignGradient, 0, coarse>,
    ActivationRow<struct Hardsigmoid, struct HardsigmoidGradient, 0, coarse>,
    ActivationRow<struct Hardshrink, struct ShrinkGradient, 1, coarse>,
    ActivationRow<struct Softshrink, struct ShrinkGradient, 1, coarse>,
    ActivationRow<struct NanToNum, struct NanToNumGradient, 3, coarse, 0>>;
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
