#include <reel/ops/comparison.h>
#include <reel/ops/elementwise.h>

#include <limits>

#include "../../dispatch/autocast.h"
#include "../if_needed.h"
#include "../registry.h"
#include "elementwise.h"

namespace reel {

using namespace detail;

// y = a + b;  da = d,  db = d

constexpr OpInfo add_op{
    .name = "add",
    .forward = binary_forward<formulas::Add>,
    .gradient =
        [](Gradient& g) {
          g.pass_on(1, false);
          g.pass_on(0, true);
        },
    .joining = by_elements,
};

Tensor add(const Arg& a, const Arg& b) { return binary<formulas::Add>(add_op, a, b, Types::arithmetic); }

// y = a − b;  da = d,  db = −d

constexpr OpInfo sub_op{
    .name = "sub",
    .forward = binary_forward<formulas::Sub>,
    .gradient =
        [](Gradient& g) {
          g.accumulate(0, g.output());
          if (g.wants(1)) g.accumulate(1, -g.output());
        },
    .joining = by_elements,
};

Tensor sub(const Arg& a, const Arg& b) { return binary<formulas::Sub>(sub_op, a, b, Types::no_bool); }

// y = a b;  da = d b,  db = d a

constexpr OpInfo mul_op{
    .name = "mul",
    .forward = binary_forward<formulas::Mul>,
    .gradient = [](Gradient& g) { g.accumulate_factors(); },
    .saves_input_for = {inputs({1}), inputs({0})},
    .joining = by_elements,
};

Tensor mul(const Arg& a, const Arg& b) { return binary<formulas::Mul>(mul_op, a, b, Types::arithmetic); }

// y = a / b;  da = d / b,  db = −d y / b

constexpr OpInfo div_op{
    .name = "div",
    .forward = binary_forward<formulas::Div>,
    .gradient =
        [](Gradient& g) {
          // Halves divided by several numbers of a batch, which are a column of f32, are rounded as by each.
          Tensor quotient = to_if_needed(g.output() / g.saved_input(1), g.output().dtype());
          if (g.wants(1)) g.accumulate(1, -(quotient * g.saved_output()));
          g.accumulate(0, std::move(quotient));
        },
    .saves_input_for = {0, inputs({0, 1})},
    .saves_output_for = {inputs({1})},
    .joining = by_elements,
};

Tensor div(const Arg& a, const Arg& b) {
  if (a.is_tensor()) [[likely]]
    return binary<formulas::Div>(div_op, a, b, Types::floating);
  // A multiple of the reciprocal, which autocast computes in f32.
  return binary_general(div_op, a, *AutocastArg(Precision::full, b), Types::floating);
}

// y = ⌊a / b⌋;  da = 0,  db = 0

constexpr OpInfo floor_divide_op{
    .name = "floor_divide",
    .forward = binary_forward<formulas::FloorDivide>,
    .gradient =
        [](Gradient& g) {
          accumulate_zeros(g, 0);
          accumulate_zeros(g, 1);
        },
    .joining = by_elements,
};

Tensor floor_divide(const Arg& a, const Arg& b) { return binary(floor_divide_op, a, b, Types::no_bool); }

// y = a − b ⌊a / b⌋;  da = d,  db = −d ⌊a / b⌋

constexpr OpInfo mod_op{
    .name = "mod",
    .forward = binary_forward<formulas::Mod>,
    .gradient =
        [](Gradient& g) {
          g.accumulate(0, g.output());
          if (!g.wants(1)) return;
          Tensor quotient = floor_divide(widened(g.saved_input(0)), widened(g.saved_input(1)));
          g.accumulate(1, -(g.output() * quotient));
        },
    .saves_input_for = {inputs({1}), inputs({1})},
    .joining = by_elements,
};

Tensor mod(const Arg& a, const Arg& b) { return binary(mod_op, a, b, Types::no_bool); }

// y = a − b trunc(a / b);  da = d,  db = −d trunc(a / b)

constexpr OpInfo fmod_op{
    .name = "fmod",
    .forward = binary_forward<formulas::Fmod>,
    .gradient =
        [](Gradient& g) {
          g.accumulate(0, g.output());
          if (!g.wants(1)) return;
          Tensor a = widened(g.saved_input(0)), b = widened(g.saved_input(1));
          Tensor quotient = floor_divide(abs(a), abs(b));
          g.accumulate(1, g.output() * where((a < 0) == (b < 0), -quotient, quotient));
        },
    .saves_input_for = {inputs({1}), inputs({1})},
    .joining = by_elements,
};

Tensor fmod(const Arg& a, const Arg& b) { return binary(fmod_op, a, b, Types::no_bool); }

// xlogy: y = a log b

Tensor xlogy(const Arg& x, const Arg& y) {
  BinaryOperands given("xlogy", x, y, Types::floating);
  OpScope caller(x.location(), "xlogy");
  Tensor a = widened(*given.a), b = widened(*given.b);
  // The logarithm must be finite for its derivatives to be masked.
  Tensor vanishes = logical_and(a == 0.0, logical_or(b <= 0.0, b == std::numeric_limits<double>::infinity()));
  return to_if_needed(a * log(where(vanishes, 1.0, b)), autocast_dtype(Precision::full, given.dtype));
}

// y = a^b;  da = d b a^(b − 1), 0 where a = b = 0;  db = d y log a, 0 where a = 0 and b ≥ 0

namespace {

// d/da a^b. Masked elements are kept finite, because 0 · ∞ would become NaN, here or in a further derivative.
Tensor base_derivative(const Tensor& a, const Tensor& b, bool differentiable) {
  Tensor zero = b == 0.0;
  Tensor power = where(zero, 1.0, b);
  if (!differentiable) return where(zero, 0.0, b * pow(a, power - 1.0));
  // At b = 0 the derivative is b / a, which is 0 but has a derivative by b.
  Tensor divisor = where(mul(zero, a != 0.0), a, 1.0);
  return where(zero, where(zero, b, 0.0) / divisor, power * pow(where(zero, 1.0, a), power - 1.0));
}

}  // namespace

constexpr OpInfo pow_op{
    .name = "pow",
    .forward = binary_forward<formulas::Pow>,
    .gradient =
        [](Gradient& g) {
          const Tensor& d = g.output();
          Tensor a = widened(g.saved_input(0)), b = widened(g.saved_input(1));
          if (g.wants(0)) g.accumulate(0, d * base_derivative(a, b, g.recording()));
          if (g.wants(1)) {
            // The logarithm's own derivative must not be computed at 0 either.
            Tensor vanishes = mul(a == 0.0, b >= 0.0);
            g.accumulate(1, where(vanishes, 0.0, widened(d) * g.saved_output() * log(where(vanishes, 1.0, a))));
          }
        },
    .saves_input_for = {inputs({0, 1}), inputs({0, 1})},
    .saves_output_for = {inputs({1})},
    .precision = Precision::full,
    .joining = by_elements,
};

Tensor pow(const Arg& a, const Arg& b) { return binary(pow_op, a, b, Types::no_bool); }

// y = log(e^a + e^b);  da = d e^a / (e^a + e^b),  db = d e^b / (e^a + e^b), 0 where y = −∞

constexpr OpInfo logaddexp_op{
    .name = "logaddexp",
    .forward = binary_forward<formulas::Logaddexp>,
    .gradient =
        [](Gradient& g) {
          Tensor a = widened(g.saved_input(0)), b = widened(g.saved_input(1));
          // Equal infinities share the gradient equally; their difference would be an anomaly.
          Tensor equal_infinities = logical_and(isinf(a), a == b);
          Tensor apart = where(equal_infinities, 0.0, a) - where(equal_infinities, 0.0, b);
          Tensor d = where(logical_and(equal_infinities, a < 0.0), 0.0, g.output());
          if (g.wants(0)) g.accumulate(0, d * sigmoid(apart));
          if (g.wants(1)) g.accumulate(1, d * sigmoid(-apart));
        },
    .saves_input_for = {inputs({0, 1}), inputs({0, 1})},
    .precision = Precision::full,
    .joining = by_elements,
};

Tensor logaddexp(const Arg& a, const Arg& b) { return binary(logaddexp_op, a, b, Types::floating); }

OpList detail::arithmetic_ops() {
  static constexpr const OpInfo* ops[] = {&add_op, &sub_op,  &mul_op, &div_op,      &floor_divide_op,
                                          &mod_op, &fmod_op, &pow_op, &logaddexp_op};
  return ops;
}

}  // namespace reel
