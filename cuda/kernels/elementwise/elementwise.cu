#include <tuple>
#include <type_traits>
#include <utility>

#include "../../../lib/kernels/formulas/activation.h"
#include "../../../lib/kernels/formulas/binary.h"
#include "../../../lib/kernels/formulas/comparison.h"
#include "../../../lib/kernels/formulas/row_parts.h"
#include "../../../lib/kernels/formulas/special.h"
#include "../../../lib/kernels/formulas/unary.h"
#include "../../device/formula_loop.h"
#include "../../device/plain_view.h"
#include "../../runtime/cuda_kernels.h"
#include "elementwise.h"

// The kernels of the lists of elementwise kernels, compiled in REEL_PARTS parts: in each, REEL_PART is its number.

namespace reel::detail::inline REEL_TARGET {
namespace {

template <class F>
struct InDouble {
  template <class V>
  REEL_DEVICE V operator()(V x) const {
    return static_cast<V>(F()(static_cast<double>(x)));
  }
};

// Frequent exponents are computed without logarithms. If a single number is the exponent, no warp diverges.
struct Pow {
  template <class V>
  REEL_DEVICE V operator()(V a, V b) const {
    if (b == V(2)) return formulas::Square()(a);
    if (b == V(3)) return formulas::Cube()(a);
    if (b == V(0.5)) return formulas::RootPower()(a);
    if (b == V(-1)) return formulas::Reciprocal()(a);
    return formulas::Pow()(a, b);
  }
};

}  // namespace

// Too many digits are lost for f32 throughout.
template <>
struct DeviceFormula<formulas::Lgamma> {
  using type = InDouble<formulas::Lgamma>;
};
template <>
struct DeviceFormula<formulas::Digamma> {
  using type = InDouble<formulas::Digamma>;
};
template <>
struct DeviceFormula<formulas::Pow> {
  using type = Pow;
};

namespace {

template <class F>
void plain_binary(float* out, const float* a, const float* b, std::int64_t count) {
  run_alike<float>(F(), *PlainView(out, count), *PlainView(a, count), *PlainView(b, count));
}

template <class Row>
void add_binary_kernel(KernelTable& table) {
  using F = typename Row::Formula;
  table.binary[binary_place<F>] = row_kernel<Row>;
  if constexpr (Row::grain == Grain::coarse && Row::operands != Operands::integers &&
                Row::operands != Operands::integers_and_bools && Row::operands != Operands::compared)
    table.plain_binary[binary_place<F>] = plain_binary<F>;
}

// A formula with its parameters, of the type in which x is computed.
template <class F, class V, int count>
struct WithParameters {
  V parameters[3];
  template <class... Inputs>
  REEL_DEVICE V operator()(Inputs... x) const {
    if constexpr (count == 1)
      return F()(x..., parameters[0]);
    else if constexpr (count == 2)
      return F()(x..., parameters[0], parameters[1]);
    else
      return F()(x..., parameters[0], parameters[1], parameters[2]);
  }
};

template <class F, int count, class... Inputs>
void run_with_parameters(const View& out, const ActivationParameters& given, const Inputs&... inputs) {
  if constexpr (count == 0)
    run_floating(F(), out, inputs...);
  else
    with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
      using V = Wide<T>;
      WithParameters<F, V, count> formula{static_cast<V>(given[0]), static_cast<V>(given[1]), static_cast<V>(given[2])};
      run_alike<T>(formula, out, inputs...);
    });
}

template <class F, int count>
void activation_kernel(const View& out, const View& x, const ActivationParameters& parameters) {
  run_with_parameters<F, count>(out, parameters, x);
}
template <class G, int count>
void activation_gradient(const View& out, const View& d, const View& x, const ActivationParameters& parameters) {
  run_with_parameters<G, count>(out, parameters, d, x);
}

template <class Row>
void add_activation_kernels(ActivationKernels& table) {
  constexpr int place = activation_place<typename Row::Formula>;
  table.forward[place] = activation_kernel<typename Row::Formula, Row::parameters>;
  table.gradient[place] = activation_gradient<typename Row::Gradient, Row::gradient_parameters>;
}

}  // namespace

template <>
void fill_elementwise_part<REEL_PART>(KernelTable& table, ActivationKernels& activation) {
  for_each_row<REEL_PART, REEL_PARTS>(formulas::UnaryRows(), [&]<class Row>(Row) {
    table.unary[unary_place<typename Row::Formula>] = row_kernel<Row>;
  });
  for_each_row<REEL_PART, REEL_PARTS>(formulas::BinaryRows(), [&]<class Row>(Row) { add_binary_kernel<Row>(table); });
  for_each_row<REEL_PART, REEL_PARTS>(formulas::ActivationRows(),
                                      [&]<class Row>(Row) { add_activation_kernels<Row>(activation); });
}

#if REEL_PART == 0
void fill_elementwise(KernelTable& table) {
  static ActivationKernels activation{};
  [&]<int... part>(std::integer_sequence<int, part...>) {
    (fill_elementwise_part<part>(table, activation), ...);
  }(std::make_integer_sequence<int, REEL_PARTS>());
  fill_masked_softmax(activation);
  table.activation = &activation;
}
#endif

}  // namespace reel::detail::inline REEL_TARGET
