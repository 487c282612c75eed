#include <reel/ops/comparison.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/stop_gradient.h>

#include <numbers>

#include "../if_needed.h"
#include "../registry.h"
#include "elementwise.h"

namespace reel {

using namespace detail;

// y = sin x;  dx = d cos x

constexpr OpInfo sin_op =
    unary_by_x<formulas::Sin>("sin", [](Gradient& g) { g.accumulate_product(0, g.output(), cos(g.saved_input(0))); });

Tensor sin(const Arg& x) { return floating_unary(sin_op, x); }

// y = cos x;  dx = −d sin x

constexpr OpInfo cos_op =
    unary_by_x<formulas::Cos>("cos", [](Gradient& g) { g.accumulate(0, -(g.output() * sin(g.saved_input(0)))); });

Tensor cos(const Arg& x) { return floating_unary(cos_op, x); }

// y = tan x;  dx = d (1 + y²)

constexpr OpInfo tan_op = unary_by_y<formulas::Tan>(
    "tan", [](Gradient& g) { g.accumulate(0, g.output() * (square(g.saved_output()) + 1.0)); }, Precision::full);

Tensor tan(const Arg& x) { return floating_unary(tan_op, x); }

// y = arcsin x;  dx = d / √(1 − x²)

constexpr OpInfo asin_op = unary_by_x<formulas::Asin>(
    "asin", [](Gradient& g) { g.accumulate(0, g.output() * rsqrt(1.0 - square(g.saved_input(0)))); }, Precision::full);

Tensor asin(const Arg& x) { return floating_unary(asin_op, x); }

// y = arccos x;  dx = −d / √(1 − x²)

constexpr OpInfo acos_op = unary_by_x<formulas::Acos>(
    "acos", [](Gradient& g) { g.accumulate(0, -(g.output() * rsqrt(1.0 - square(g.saved_input(0))))); },
    Precision::full);

Tensor acos(const Arg& x) { return floating_unary(acos_op, x); }

// y = arctan x;  dx = d / (1 + x²)

constexpr OpInfo atan_op = unary_by_x<formulas::Atan>(
    "atan", [](Gradient& g) { g.accumulate(0, g.output() / (square(g.saved_input(0)) + 1.0)); });

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
    .forward = binary_forward<formulas::Atan2>,
    .gradient =
        [](Gradient& g) {
          AngleSlope at(widened(g.saved_input(0)), widened(g.saved_input(1)));
          Tensor share = g.output() / at.scale;
          if (g.wants(0)) g.accumulate(0, share * (at.v * at.inverse));
          if (g.wants(1)) g.accumulate(1, -(share * (at.u * at.inverse)));
        },
    .saves_input_for = {inputs({0, 1}), inputs({0, 1})},
    .joining = by_elements,
};

Tensor atan2(const Arg& a, const Arg& b) { return binary(atan2_op, a, b, Types::floating); }

// y = sin(πx) / (πx);  dx = d (cos(πx) − y) / x, near 0 by its Taylor series

namespace {

Tensor sinc_derivative(const Tensor& x, const Tensor& y) {
  constexpr double pi = std::numbers::pi;
  // The difference would lose digits near 0, and its derivatives exist only in the limit.
  Tensor near = abs(x) < 0.25, inner = where(near, x, 0.0), squared = square(inner);
  Tensor outer = where(near, 1.0, x), from = outer - round(outer * 0.5) * 2.0;
  // x Σ_k (−1)^k 2k π^2k x^(2k − 2) / (2k + 1)!
  constexpr int terms = 9;
  double coefficients[terms], power = 1;
  for (int k = 1; k <= terms; ++k) {
    power *= -pi * pi / (2.0 * k * (2.0 * k + 1));
    coefficients[k - 1] = 2 * k * power;
  }
  Tensor series = squared * coefficients[terms - 1] + coefficients[terms - 2];
  for (int k = terms - 2; k-- > 0;) series = series * squared + coefficients[k];
  return where(near, inner * series, (cos(from * pi) - where(near, 0.0, y)) / outer);
}

}  // namespace

constexpr OpInfo sinc_op{
    .name = "sinc",
    .forward = unary_forward<formulas::Sinc>,
    .gradient =
        [](Gradient& g) {
          Tensor slope = sinc_derivative(widened(g.saved_input(0)), widened(g.saved_output()));
          g.accumulate(0, g.output() * to_if_needed(slope, g.input_dtype(0)));
        },
    .saves_input_for = {inputs({0})},
    .saves_output_for = {inputs({0})},
    .joining = by_elements,
};

Tensor sinc(const Arg& x) { return floating_unary(sinc_op, x); }

OpList detail::trigonometric_ops() {
  static constexpr const OpInfo* ops[] = {&sin_op, &cos_op, &tan_op, &asin_op, &acos_op, &atan_op, &atan2_op, &sinc_op};
  return ops;
}

}  // namespace reel
