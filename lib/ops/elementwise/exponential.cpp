#include <reel/ops/elementwise.h>

#include <numbers>

#include "../../dispatch/autocast.h"
#include "../if_needed.h"
#include "../registry.h"
#include "elementwise.h"

namespace reel {

using namespace detail;

// y = e^x;  dx = d y

constexpr OpInfo exp_op{
    .name = "exp",
    .forward = unary_forward<formulas::Exp>,
    .gradient = [](Gradient& g) { g.accumulate_product(0, g.output(), g.saved_output()); },
    .saves_output_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_elements,
};

Tensor exp(const Arg& x) { return floating_unary<formulas::Exp>(exp_op, x); }

// y = e^x − 1;  dx = d (y + 1)

constexpr OpInfo expm1_op{
    .name = "expm1",
    .forward = unary_forward<formulas::Expm1>,
    .gradient = [](Gradient& g) { g.accumulate(0, g.output() * (g.saved_output() + 1.0)); },
    .saves_output_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_elements,
};

Tensor expm1(const Arg& x) { return floating_unary(expm1_op, x); }

// y = log x;  dx = d / x

constexpr OpInfo log_op{
    .name = "log",
    .forward = unary_forward<formulas::Log>,
    .gradient = [](Gradient& g) { g.accumulate(0, g.output() / g.saved_input(0)); },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_elements,
};

Tensor log(const Arg& x) { return floating_unary<formulas::Log>(log_op, x); }

// y = log(1 + x);  dx = d / (1 + x)

constexpr OpInfo log1p_op{
    .name = "log1p",
    .forward = unary_forward<formulas::Log1p>,
    .gradient = [](Gradient& g) { g.accumulate(0, g.output() / (g.saved_input(0) + 1.0)); },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_elements,
};

Tensor log1p(const Arg& x) { return floating_unary(log1p_op, x); }

// y = log₂ x;  dx = d / (x log 2)

constexpr OpInfo log2_op{
    .name = "log2",
    .forward = unary_forward<formulas::Log2>,
    .gradient = [](Gradient& g) { g.accumulate(0, g.output() / (g.saved_input(0) * std::numbers::ln2)); },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_elements,
};

Tensor log2(const Arg& x) { return floating_unary(log2_op, x); }

// y = 2^x;  dx = d y log 2

constexpr OpInfo exp2_op{
    .name = "exp2",
    .forward = unary_forward<formulas::Exp2>,
    .gradient = [](Gradient& g) { g.accumulate(0, g.output() * g.saved_output() * std::numbers::ln2); },
    .saves_output_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_elements,
};

Tensor exp2(const Arg& x) { return floating_unary<formulas::Exp2>(exp2_op, x); }

// y = log₁₀ x;  dx = d / (x log 10)

constexpr OpInfo log10_op{
    .name = "log10",
    .forward = unary_forward<formulas::Log10>,
    .gradient = [](Gradient& g) { g.accumulate(0, g.output() / (g.saved_input(0) * std::numbers::ln10)); },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_elements,
};

Tensor log10(const Arg& x) { return floating_unary<formulas::Log10>(log10_op, x); }

// y = log(x / (1 − x));  dx = d / (x (1 − x))

constexpr OpInfo logit_op{
    .name = "logit",
    .forward = unary_forward<formulas::Logit>,
    .gradient =
        [](Gradient& g) {
          const Tensor& x = g.saved_input(0);
          g.accumulate(0, g.output() / (x * (1.0 - x)));
        },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_elements,
};

Tensor logit(const Arg& x, LogitOptions options) {
  if (!options.epsilon) return floating_unary<formulas::Logit>(logit_op, x);
  const Tensor& tensor = tensor_of("logit", x);
  double least = *options.epsilon;
  if (!(least >= 0 && least <= 0.5)) fail<Error>("logit", x.location(), "epsilon is {}, not in [0, 1/2]", least);
  OpScope caller(x.location(), "logit");
  // In bf16 and f16 the upper end may round to 1.
  DType dtype = is_floating(tensor.dtype()) ? tensor.dtype() : DType::f32;
  Tensor wide = widened(to_if_needed(tensor, dtype));
  Tensor y = floating_unary(logit_op, clamp(wide, least, 1 - least));
  return to_if_needed(y, autocast_dtype(Precision::full, dtype));
}

// y = sinh x;  dx = d cosh x

constexpr OpInfo sinh_op{
    .name = "sinh",
    .forward = unary_forward<formulas::Sinh>,
    .gradient = [](Gradient& g) { g.accumulate_product(0, g.output(), cosh(g.saved_input(0))); },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_elements,
};

Tensor sinh(const Arg& x) { return floating_unary(sinh_op, x); }

// y = cosh x;  dx = d sinh x

constexpr OpInfo cosh_op{
    .name = "cosh",
    .forward = unary_forward<formulas::Cosh>,
    .gradient = [](Gradient& g) { g.accumulate_product(0, g.output(), sinh(g.saved_input(0))); },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_elements,
};

Tensor cosh(const Arg& x) { return floating_unary(cosh_op, x); }

// y = arsinh x;  dx = d / √(x² + 1)

constexpr OpInfo asinh_op{
    .name = "asinh",
    .forward = unary_forward<formulas::Asinh>,
    .gradient = [](Gradient& g) { g.accumulate(0, g.output() * rsqrt(square(g.saved_input(0)) + 1.0)); },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_elements,
};

Tensor asinh(const Arg& x) { return floating_unary<formulas::Asinh>(asinh_op, x); }

// y = arcosh x;  dx = d / √((x − 1) (x + 1))

constexpr OpInfo acosh_op{
    .name = "acosh",
    .forward = unary_forward<formulas::Acosh>,
    .gradient =
        [](Gradient& g) {
          const Tensor& x = g.saved_input(0);
          g.accumulate(0, g.output() * rsqrt((x - 1.0) * (x + 1.0)));
        },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_elements,
};

Tensor acosh(const Arg& x) { return floating_unary<formulas::Acosh>(acosh_op, x); }

// y = artanh x;  dx = d / ((1 − x) (1 + x))

constexpr OpInfo atanh_op{
    .name = "atanh",
    .forward = unary_forward<formulas::Atanh>,
    .gradient =
        [](Gradient& g) {
          const Tensor& x = g.saved_input(0);
          g.accumulate(0, g.output() / ((1.0 - x) * (x + 1.0)));
        },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_elements,
};

Tensor atanh(const Arg& x) { return floating_unary<formulas::Atanh>(atanh_op, x); }

// z = d (1 − y²);  dd = e (1 − y²),  dy = −2 e d y

constexpr OpInfo tanh_gradient_op{
    .name = "tanh_gradient",
    .forward = binary_forward<formulas::TanhGradient>,
    .gradient =
        [](Gradient& g) {
          const Tensor& e = g.output();
          const Tensor& y = g.saved_input(1);
          if (g.wants(0)) g.accumulate(0, e * (1.0 - square(y)));
          if (g.wants(1)) g.accumulate(1, e * g.saved_input(0) * y * -2.0);
        },
    .saves_input_for = {inputs({1}), inputs({0, 1})},
    .joining = by_elements,
    .internal = true,
};

// y = tanh x;  dx = d (1 − y²)

constexpr OpInfo tanh_op{
    .name = "tanh",
    .forward = unary_forward<formulas::Tanh>,
    .gradient =
        [](Gradient& g) {
          g.accumulate_fused(0, tanh_gradient_op, binary_place<formulas::TanhGradient>, g.saved_output());
        },
    .saves_output_for = {inputs({0})},
    .joining = by_elements,
};

Tensor tanh(const Arg& x) { return floating_unary<formulas::Tanh>(tanh_op, x); }

// z = d y (1 − y);  dd = e y (1 − y),  dy = e d (1 − 2 y)

constexpr OpInfo sigmoid_gradient_op{
    .name = "sigmoid_gradient",
    .forward = binary_forward<formulas::SigmoidGradient>,
    .gradient =
        [](Gradient& g) {
          const Tensor& e = g.output();
          const Tensor& y = g.saved_input(1);
          if (g.wants(0)) g.accumulate(0, e * (y * (1.0 - y)));
          if (g.wants(1)) g.accumulate(1, e * g.saved_input(0) * (1.0 - y * 2.0));
        },
    .saves_input_for = {inputs({1}), inputs({0, 1})},
    .joining = by_elements,
    .internal = true,
};

// y = 1 / (1 + e^−x);  dx = d y (1 − y)

constexpr OpInfo sigmoid_op{
    .name = "sigmoid",
    .forward = unary_forward<formulas::Sigmoid>,
    .gradient =
        [](Gradient& g) {
          g.accumulate_fused(0, sigmoid_gradient_op, binary_place<formulas::SigmoidGradient>, g.saved_output());
        },
    .saves_output_for = {inputs({0})},
    .joining = by_elements,
};

Tensor sigmoid(const Arg& x) { return floating_unary<formulas::Sigmoid>(sigmoid_op, x); }

OpList detail::exponential_ops() {
  static constexpr const OpInfo* ops[] = {&exp_op,     &expm1_op,           &log_op,   &log1p_op, &log2_op,
                                          &exp2_op,    &log10_op,           &logit_op, &sinh_op,  &cosh_op,
                                          &asinh_op,   &acosh_op,           &atanh_op, &tanh_op,  &tanh_gradient_op,
                                          &sigmoid_op, &sigmoid_gradient_op};
  return ops;
}

}  // namespace reel
