#include <reel/ops/elementwise.h>
#include <reel/ops/stop_gradient.h>

#include "../registry.h"
#include "elementwise.h"

namespace reel {

using namespace detail;

// y = sin x;  dx = d cos x

constexpr OpInfo sin_op{
    .name = "sin",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<formulas::Sin>,
    .gradient = [](Gradient& g) { g.accumulate_product(0, g.output(), cos(g.saved_input(0))); },
    .saves_input_for = {inputs({0})},
};

Tensor sin(const Arg& x) { return floating_unary(sin_op, x); }

// y = cos x;  dx = −d sin x

constexpr OpInfo cos_op{
    .name = "cos",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<formulas::Cos>,
    .gradient = [](Gradient& g) { g.accumulate(0, -(g.output() * sin(g.saved_input(0)))); },
    .saves_input_for = {inputs({0})},
};

Tensor cos(const Arg& x) { return floating_unary(cos_op, x); }

// y = tan x;  dx = d (1 + y²)

constexpr OpInfo tan_op{
    .name = "tan",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<formulas::Tan>,
    .gradient = [](Gradient& g) { g.accumulate(0, g.output() * (square(g.saved_output()) + 1.0)); },
    .saves_output_for = {inputs({0})},
    .precision = Precision::full,
};

Tensor tan(const Arg& x) { return floating_unary(tan_op, x); }

// y = arcsin x;  dx = d / √(1 − x²)

constexpr OpInfo asin_op{
    .name = "asin",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<formulas::Asin>,
    .gradient = [](Gradient& g) { g.accumulate(0, g.output() * rsqrt(1.0 - square(g.saved_input(0)))); },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
};

Tensor asin(const Arg& x) { return floating_unary(asin_op, x); }

// y = arccos x;  dx = −d / √(1 − x²)

constexpr OpInfo acos_op{
    .name = "acos",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<formulas::Acos>,
    .gradient = [](Gradient& g) { g.accumulate(0, -(g.output() * rsqrt(1.0 - square(g.saved_input(0))))); },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
};

Tensor acos(const Arg& x) { return floating_unary(acos_op, x); }

// y = arctan x;  dx = d / (1 + x²)

constexpr OpInfo atan_op{
    .name = "atan",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<formulas::Atan>,
    .gradient = [](Gradient& g) { g.accumulate(0, g.output() / (square(g.saved_input(0)) + 1.0)); },
    .saves_input_for = {inputs({0})},
};

Tensor atan(const Arg& x) { return floating_unary(atan_op, x); }

// y = the angle of (b, a);  da = d b / (a² + b²),  db = −d a / (a² + b²), both 0 at (0, 0)

namespace {

// b / (a² + b²) = (1 / scale) v / (u² + v²) with u = a / scale, v = b / scale, whose squares neither overflow nor
// underflow.
struct AngleSlope {
  AngleSlope(const Tensor& a, const Tensor& b) {
    Tensor largest = stop_gradient(maximum(abs(a), abs(b)));
    Tensor at_origin = largest == 0;
    scale = where(logical_or(at_origin, isinf(largest)), 1.0, largest);
    u = a / scale;
    v = b / scale;
    // 0 at the origin in place of ∞, so that further derivatives are 0, too.
    inverse = where(at_origin, 0.0, 1.0 / where(at_origin, 1.0, square(u) + square(v)));
  }
  Tensor scale, u, v, inverse;
};

}  // namespace

constexpr OpInfo atan2_op{
    .name = "atan2",
    .arity = 2,
    .batching = Batching::elementwise,
    .forward = binary_forward<formulas::Atan2>,
    .gradient =
        [](Gradient& g) {
          AngleSlope at(g.saved_input(0), g.saved_input(1));
          Tensor share = g.output() / at.scale;
          if (g.wants(0)) g.accumulate(0, share * (at.v * at.inverse));
          if (g.wants(1)) g.accumulate(1, -(share * (at.u * at.inverse)));
        },
    .saves_input_for = {inputs({0, 1}), inputs({0, 1})},
};

Tensor atan2(const Arg& a, const Arg& b) { return binary(atan2_op, a, b, Types::floating); }

std::span<const RegisteredOp> detail::trigonometric_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "sin", .info = &sin_op},     {.name = "cos", .info = &cos_op},   {.name = "tan", .info = &tan_op},
      {.name = "asin", .info = &asin_op},   {.name = "acos", .info = &acos_op}, {.name = "atan", .info = &atan_op},
      {.name = "atan2", .info = &atan2_op},
  };
  return ops;
}

}  // namespace reel
