#include <reel/ops/elementwise.h>

#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/shape.h>

#include "../../core/op_error.h"
#include "../registry.h"
#include "elementwise.h"

namespace reel {

using namespace detail;

// z = 0;  dd = 0. The gradient of piecewise constant functions.

constexpr OpInfo zero_gradient_op{
    .name = "zero_gradient",
    .forward = [](Call& call) { kernels(call.output().device).fill(call.output(), 0, 0); },
    .gradient = [](Gradient& g) { accumulate_zeros(g, 0); },
    .joining = by_elements,
    .internal = true,
};

void detail::accumulate_zeros(Gradient& g, std::size_t i) {
  if (g.wants(i)) g.accumulate(i, unary(zero_gradient_op, Arg(g.output(), g.where())));
}

// y = −x;  dx = −d

constexpr OpInfo neg_op{
    .name = "neg",
    .forward = unary_forward<formulas::Neg>,
    .gradient = [](Gradient& g) { g.accumulate(0, -g.output()); },
    .joining = by_elements,
};

Tensor neg(const Arg& x) { return number_unary(neg_op, x); }

// y = |x|;  dx = d sign x

constexpr OpInfo abs_op =
    unary_by_x<formulas::Abs>("abs", [](Gradient& g) { g.accumulate(0, g.output() * sign(g.saved_input(0))); });

Tensor abs(const Arg& x) { return number_unary(abs_op, x); }

// y = sign x;  dx = 0

constexpr OpInfo sign_op{
    .name = "sign",
    .forward = unary_forward<formulas::Sign>,
    .gradient = [](Gradient& g) { accumulate_zeros(g, 0); },
    .joining = by_elements,
};

Tensor sign(const Arg& x) { return number_unary(sign_op, x); }

// y = x²;  dx = 2 d x

constexpr OpInfo square_op =
    unary_by_x<formulas::Square>("square", [](Gradient& g) { g.accumulate(0, g.output() * g.saved_input(0) * 2.0); });

Tensor square(const Arg& x) { return number_unary(square_op, x); }

// z = 0 where y = 0, else d;  dd = 0 where y = 0, else e

constexpr OpInfo relu_gradient_op{
    .name = "relu_gradient",
    .forward = binary_forward<formulas::ReluGradient>,
    .gradient =
        [](Gradient& g) {
          if (g.wants(0)) g.accumulate(0, where(g.saved_input(1) == 0.0, 0.0, g.output()));
          if (g.wants(1)) g.accumulate(1, zeros_like(g.output()));
        },
    .saves_input_for = {0, inputs({0})},
    .joining = by_elements,
    .internal = true,
};

// y = max(x, 0);  dx = 0 where y = 0, else d

constexpr OpInfo relu_op = unary_by_y<formulas::Relu>("relu", [](Gradient& g) {
  g.accumulate_fused(0, relu_gradient_op, binary_place<formulas::ReluGradient>, g.saved_output());
});

Tensor relu(const Arg& x) { return number_unary(relu_op, x); }

// y = ⌊x⌋;  dx = 0

constexpr OpInfo floor_op{
    .name = "floor",
    .forward = unary_forward<formulas::Floor>,
    .gradient = [](Gradient& g) { accumulate_zeros(g, 0); },
    .joining = by_elements,
};

Tensor floor(const Arg& x) { return number_unary(floor_op, x); }

// y = ⌈x⌉;  dx = 0

constexpr OpInfo ceil_op{
    .name = "ceil",
    .forward = unary_forward<formulas::Ceil>,
    .gradient = [](Gradient& g) { accumulate_zeros(g, 0); },
    .joining = by_elements,
};

Tensor ceil(const Arg& x) { return number_unary(ceil_op, x); }

// y = the integer nearest to x;  dx = 0

constexpr OpInfo round_op{
    .name = "round",
    .forward = unary_forward<formulas::Round>,
    .gradient = [](Gradient& g) { accumulate_zeros(g, 0); },
    .joining = by_elements,
};

Tensor round(const Arg& x) { return number_unary(round_op, x); }

// y = ⌊x⌋ where x ≥ 0, else ⌈x⌉;  dx = 0

constexpr OpInfo trunc_op{
    .name = "trunc",
    .forward = unary_forward<formulas::Trunc>,
    .gradient = [](Gradient& g) { accumulate_zeros(g, 0); },
    .joining = by_elements,
};

Tensor trunc(const Arg& x) { return number_unary(trunc_op, x); }

// y = 1 / x;  dx = −d y²

constexpr OpInfo reciprocal_op = unary_by_y<formulas::Reciprocal>(
    "reciprocal", [](Gradient& g) { g.accumulate(0, -(g.output() * square(g.saved_output()))); }, Precision::full);

Tensor reciprocal(const Arg& x) { return floating_unary<formulas::Reciprocal>(reciprocal_op, x); }

// y = √x;  dx = d / (2 y)

constexpr OpInfo sqrt_op =
    unary_by_y<formulas::Sqrt>("sqrt", [](Gradient& g) { g.accumulate(0, g.output() / (g.saved_output() * 2.0)); });

Tensor sqrt(const Arg& x) { return floating_unary<formulas::Sqrt>(sqrt_op, x); }

// y = 1 / √x;  dx = −d y³ / 2

constexpr OpInfo rsqrt_op = unary_by_y<formulas::Rsqrt>(
    "rsqrt",
    [](Gradient& g) {
      const Tensor& y = g.saved_output();
      g.accumulate(0, g.output() * (square(y) * y) * -0.5);
    },
    Precision::full);

Tensor rsqrt(const Arg& x) { return floating_unary(rsqrt_op, x); }

OpList detail::unary_ops() {
  static constexpr const OpInfo* ops[] = {&zero_gradient_op, &neg_op,           &abs_op,   &sign_op, &square_op,
                                          &relu_op,          &relu_gradient_op, &floor_op, &ceil_op, &round_op,
                                          &trunc_op,         &reciprocal_op,    &sqrt_op,  &rsqrt_op};
  return ops;
}

}  // namespace reel
