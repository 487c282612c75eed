#pragma once

#include "../../../lib/kernels/activation.h"
#include "../../../lib/kernels/formulas/activation.h"

#include "../../device/formula_loop.h"
#include "../../device/row_choice.h"

namespace reel::detail {
inline namespace REEL_TARGET {

// The formulas of activation_smooth.cu; activation.cu has all others.
using Smooth = Formulas<formulas::Gelu, formulas::TanhGelu, formulas::Silu, formulas::Mish>;

void fill_smooth(ActivationKernels& table);

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
void add_kernels(ActivationKernels& table) {
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

template <class... Rows>
void add_all_kernels(ActivationKernels& table, KernelList<Rows...>) {
  (add_kernels<Rows>(table), ...);
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
