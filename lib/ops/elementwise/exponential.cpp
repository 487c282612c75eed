#include <reel/ops/elementwise.h>

#include <numbers>

#include "../../dispatch/autocast.h"
#include "../if_needed.h"
#include "../registry.h"
#include "elementwise.h"

namespace reel {

using namespace detail;

// y = e^x;  dx = d y

constexpr OpInfo exp_op = unary_by_y<formulas::Exp>(
    "exp", [](Gradient& g) { g.accumulate_product(0, g.output(), g.saved_output()); }, Precision::full);

Tensor exp(const Arg& x) { return floating_unary<formulas::Exp>(exp_op, x); }

// y = e^x − 1;  dx = d (y + 1)

constexpr OpInfo expm1_op = unary_by_y<formulas::Expm1>(
    "expm1", [](Gradient& g) { g.accumulate(0, g.output() * (g.saved_output() + 1.0)); }, Precision::full);

Tensor expm1(const Arg& x) { return floating_unary(expm1_op, x); }

// y = log x;  dx = d / x

constexpr OpInfo log_op = unary_by_x<formulas::Log>(
    "log", [](Gradient& g) { g.accumulate(0, g.output() / g.saved_input(0)); }, Precision::full);

Tensor log(const Arg& x) { return floating_unary<formulas::Log>(log_op, x); }

// y = log(1 + x);  dx = d / (1 + x)

constexpr OpInfo log1p_op = unary_by_x<formulas::Log1p>(
    "log1p", [](Gradient& g) { g.accumulate(0, g.output() / (g.saved_input(0) + 1.0)); }, Precision::full);

Tensor log1p(const Arg& x) { return floating_unary(log1p_op, x); }

// y = log₂ x;  dx = d / (x log 2)

constexpr OpInfo log2_op = unary_by_x<formulas::Log2>(
    "log2", [](Gradient& g) { g.accumulate(0, g.output() / (g.saved_input(0) * std::numbers::ln2)); }, Precision::full);

Tensor log2(const Arg& x) { return floating_unary(log2_op, x); }

// y = 2^x;  dx = d y log 2

constexpr OpInfo exp2_op = unary_by_y<formulas::Exp2>(
    "exp2", [](Gradient& g) { g.accumulate(0, g.output() * g.saved_output() * std::numbers::ln2); }, Precision::full);

Tensor exp2(const Arg& x) { return floating_unary<formulas::Exp2>(exp2_op, x); }

// y = log₁₀ x;  dx = d / (x log 10)

constexpr OpInfo log10_op = unary_by_x<formulas::Log10>(
    "log10", [](Gradient& g) { g.accumulate(0, g.output() / (g.saved_input(0) * std::numbers::ln10)); },
    Precision::full);

Tensor log10(const Arg& x) { return floating_unary<formulas::Log10>(log10_op, x); }

// y = log(x / (1 − x));  dx = d / (x (1 − x))

constexpr OpInfo logit_op = unary_by_x<formulas::Logit>(
    "logit",
    [](Gradient& g) {
      const Tensor& x = g.saved_input(0);
      g.accumulate(0, g.output() / (x * (1.0 - x)));
    },
    Precision::full);

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

constexpr OpInfo sinh_op = unary_by_x<formulas::Sinh>(
    "sinh", [](Gradient& g) { g.accumulate_product(0, g.output(), cosh(g.saved_input(0))); }, Precision::full);

Tensor sinh(const Arg& x) { return floating_unary(sinh_op, x); }

// y = cosh x;  dx = d sinh x

constexpr OpInfo cosh_op = unary_by_x<formulas::Cosh>(
    "cosh", [](Gradient& g) { g.accumulate_product(0, g.output(), sinh(g.saved_input(0))); }, Precision::full);

Tensor cosh(const Arg& x) { return floating_unary(cosh_op, x); }

// y = arsinh x;  dx = d / √(x² + 1)

constexpr OpInfo asinh_op = unary_by_x<formulas::Asinh>(
    "asinh", [](Gradient& g) { g.accumulate(0, g.output() * rsqrt(square(g.saved_input(0)) + 1.0)); }, Precision::full);

Tensor asinh(const Arg& x) { return floating_unary<formulas::Asinh>(asinh_op, x); }

// y = arcosh x;  dx = d / √((x − 1) (x + 1))

constexpr OpInfo acosh_op = unary_by_x<formulas::Acosh>(
    "acosh",
    [](Gradient& g) {
      const Tensor& x = g.saved_input(0);
      g.accumulate(0, g.output() * rsqrt((x - 1.0) * (x + 1.0)));
    },
    Precision::full);

Tensor acosh(const Arg& x) { return floating_unary<formulas::Acosh>(acosh_op, x); }

// y = artanh x;  dx = d / ((1 − x) (1 + x))

constexpr OpInfo atanh_op = unary_by_x<formulas::Atanh>(
    "atanh",
    [](Gradient& g) {
      const Tensor& x = g.saved_input(0);
      g.accumulate(0, g.output() / ((1.0 - x) * (x + 1.0)));
    },
    Precision::full);

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

constexpr OpInfo tanh_op = unary_by_y<formulas::Tanh>("tanh", [](Gradient& g) {
  g.accumulate_fused(0, tanh_gradient_op, binary_place<formulas::TanhGradient>, g.saved_output());
});

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

constexpr OpInfo sigmoid_op = unary_by_y<formulas::Sigmoid>("sigmoid", [](Gradient& g) {
  g.accumulate_fused(0, sigmoid_gradient_op, binary_place<formulas::SigmoidGradient>, g.saved_output());
});

Tensor sigmoid(const Arg& x) { return floating_unary<formulas::Sigmoid>(sigmoid_op, x); }

OpList detail::exponential_ops() {
  static constexpr const OpInfo* ops[] = {&exp_op,     &expm1_op,           &log_op,   &log1p_op, &log2_op,
                                          &exp2_op,    &log10_op,           &logit_op, &sinh_op,  &cosh_op,
                                          &asinh_op,   &acosh_op,           &atanh_op, &tanh_op,  &tanh_gradient_op,
                                          &sigmoid_op, &sigmoid_gradient_op};
  return ops;
}

}  // namespace reel
