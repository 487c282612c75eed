#pragma once

#include <cstdint>

#include "vocabulary.h"

// What each file of formulas says of them in its list, from which every device makes its kernels: see elementwise.h.

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

}  // namespace kernel_lists
}  // namespace REEL_TARGET
}  // namespace reel::detail
