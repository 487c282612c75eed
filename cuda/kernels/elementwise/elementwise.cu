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

// Formulas and their gradients with one or two parameters, of the type in which x is computed.
template <class F, class V>
struct WithOne {
  V first;
  REEL_DEVICE V operator()(V x) const { return F()(x, first); }
  REEL_DEVICE V operator()(V d, V x) const { return F()(d, x, first); }
};
template <class F, class V>
struct WithTwo {
  V first, second;
  REEL_DEVICE V operator()(V x) const { return F()(x, first, second); }
  REEL_DEVICE V operator()(V d, V x) const { return F()(d, x, first, second); }
};

template <class F>
void plain(const View& out, const View& x, double, double) {
  run_floating(F(), out, x);
}
template <class F>
void plain_gradient(const View& out, const View& d, const View& x, double, double) {
  run_floating(F(), out, d, x);
}

template <class F, class... Inputs>
void run_with_one(double first, const View& out, const Inputs&... inputs) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    run_alike<T>(WithOne<F, Wide<T>>{static_cast<Wide<T>>(first)}, out, inputs...);
  });
}
template <class F, class... Inputs>
void run_with_two(double first, double second, const View& out, const Inputs&... inputs) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    run_alike<T>(WithTwo<F, Wide<T>>{static_cast<Wide<T>>(first), static_cast<Wide<T>>(second)}, out, inputs...);
  });
}

template <class F>
void with_one(const View& out, const View& x, double first, double) {
  run_with_one<F>(first, out, x);
}
template <class F>
void one_gradient(const View& out, const View& d, const View& x, double first, double) {
  run_with_one<F>(first, out, d, x);
}
template <class F>
void with_two(const View& out, const View& x, double first, double second) {
  run_with_two<F>(first, second, out, x);
}
template <class F>
void two_gradient(const View& out, const View& d, const View& x, double first, double second) {
  run_with_two<F>(first, second, out, d, x);
}

template <class Row>
void add_activation_kernels(ActivationKernels& table) {
  using F = typename Row::Formula;
  using G = typename Row::Gradient;
  auto& forward = table.forward[activation_place<F>];
  auto& gradient = table.gradient[activation_place<F>];
  if constexpr (Row::parameters == 0)
    forward = plain<F>, gradient = plain_gradient<G>;
  else if constexpr (Row::parameters == 1)
    forward = with_one<F>, gradient = one_gradient<G>;
  else
    forward = with_two<F>, gradient = two_gradient<G>;
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
