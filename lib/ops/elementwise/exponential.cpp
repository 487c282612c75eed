#include <reel/ops/elementwise.h>

#include <numbers>

#include "../registry.h"
#include "elementwise.h"

namespace reel {

using namespace detail;

// y = e^x;  dx = d y

constexpr OpInfo exp_op{
    .name = "exp",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<formulas::Exp>,
    .gradient = [](Gradient& g) { g.accumulate_product(0, g.output(), g.saved_output()); },
    .saves_output_for = {inputs({0})},
    .precision = Precision::full,
};

Tensor exp(const Arg& x) { return floating_unary<formulas::Exp>(exp_op, x); }

// y = e^x − 1;  dx = d (y + 1)

constexpr OpInfo expm1_op{
    .name = "expm1",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<formulas::Expm1>,
    .gradient = [](Gradient& g) { g.accumulate(0, g.output() * (g.saved_output() + 1.0)); },
    .saves_output_for = {inputs({0})},
    .precision = Precision::full,
};

Tensor expm1(const Arg& x) { return floating_unary(expm1_op, x); }

// y = log x;  dx = d / x

constexpr OpInfo log_op{
    .name = "log",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<formulas::Log>,
    .gradient = [](Gradient& g) { g.accumulate(0, g.output() / g.saved_input(0)); },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
};

Tensor log(const Arg& x) { return floating_unary<formulas::Log>(log_op, x); }

// y = log(1 + x);  dx = d / (1 + x)

constexpr OpInfo log1p_op{
    .name = "log1p",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<formulas::Log1p>,
    .gradient = [](Gradient& g) { g.accumulate(0, g.output() / (g.saved_input(0) + 1.0)); },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
};

Tensor log1p(const Arg& x) { return floating_unary(log1p_op, x); }

// y = log₂ x;  dx = d / (x log 2)

constexpr OpInfo log2_op{
    .name = "log2",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<formulas::Log2>,
    .gradient = [](Gradient& g) { g.accumulate(0, g.output() / (g.saved_input(0) * std::numbers::ln2)); },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
};

Tensor log2(const Arg& x) { return floating_unary(log2_op, x); }

// y = sinh x;  dx = d cosh x

constexpr OpInfo sinh_op{
    .name = "sinh",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<formulas::Sinh>,
    .gradient = [](Gradient& g) { g.accumulate_product(0, g.output(), cosh(g.saved_input(0))); },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
};

Tensor sinh(const Arg& x) { return floating_unary(sinh_op, x); }

// y = cosh x;  dx = d sinh x

constexpr OpInfo cosh_op{
    .name = "cosh",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<formulas::Cosh>,
    .gradient = [](Gradient& g) { g.accumulate_product(0, g.output(), sinh(g.saved_input(0))); },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
};

Tensor cosh(const Arg& x) { return floating_unary(cosh_op, x); }

// z = d (1 − y²);  dd = e (1 − y²),  dy = −2 e d y

constexpr OpInfo tanh_gradient_op{
    .name = "tanh_gradient",
    .arity = 2,
    .batching = Batching::elementwise,
    .forward = binary_forward<formulas::TanhGradient>,
    .gradient =
        [](Gradient& g) {
          const Tensor& e = g.output();
          const Tensor& y = g.saved_input(1);
          if (g.wants(0)) g.accumulate(0, e * (1.0 - square(y)));
          if (g.wants(1)) g.accumulate(1, e * g.saved_input(0) * y * -2.0);
        },
    .saves_input_for = {inputs({1}), inputs({0, 1})},
};

// y = tanh x;  dx = d (1 − y²)

constexpr OpInfo tanh_op{
    .name = "tanh",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<formulas::Tanh>,
    .gradient =
        [](Gradient& g) {
          g.accumulate_fused(0, tanh_gradient_op, binary_place<formulas::TanhGradient>, g.saved_output());
        },
    .saves_output_for = {inputs({0})},
};

Tensor tanh(const Arg& x) { return floating_unary<formulas::Tanh>(tanh_op, x); }

// z = d y (1 − y);  dd = e y (1 − y),  dy = e d (1 − 2 y)

constexpr OpInfo sigmoid_gradient_op{
    .name = "sigmoid_gradient",
    .arity = 2,
    .batching = Batching::elementwise,
    .forward = binary_forward<formulas::SigmoidGradient>,
    .gradient =
        [](Gradient& g) {
          const Tensor& e = g.output();
          const Tensor& y = g.saved_input(1);
          if (g.wants(0)) g.accumulate(0, e * (y * (1.0 - y)));
          if (g.wants(1)) g.accumulate(1, e * g.saved_input(0) * (1.0 - y * 2.0));
        },
    .saves_input_for = {inputs({1}), inputs({0, 1})},
};

// y = 1 / (1 + e^−x);  dx = d y (1 − y)

constexpr OpInfo sigmoid_op{
    .name = "sigmoid",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<formulas::Sigmoid>,
    .gradient =
        [](Gradient& g) {
          g.accumulate_fused(0, sigmoid_gradient_op, binary_place<formulas::SigmoidGradient>, g.saved_output());
        },
    .saves_output_for = {inputs({0})},
};

Tensor sigmoid(const Arg& x) { return floating_unary<formulas::Sigmoid>(sigmoid_op, x); }

std::span<const RegisteredOp> detail::exponential_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "exp", .info = &exp_op},
      {.name = "expm1", .info = &expm1_op},
      {.name = "log", .info = &log_op},
      {.name = "log1p", .info = &log1p_op},
      {.name = "log2", .info = &log2_op},
      {.name = "sinh", .info = &sinh_op},
      {.name = "cosh", .info = &cosh_op},
      {.name = "tanh", .info = &tanh_op},
      {.name = "tanh_gradient", .info = &tanh_gradient_op, .internal = true},
      {.name = "sigmoid", .info = &sigmoid_op},
      {.name = "sigmoid_gradient", .info = &sigmoid_gradient_op, .internal = true},
  };
  return ops;
}

}  // namespace reel
