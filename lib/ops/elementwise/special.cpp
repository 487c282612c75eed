#include <reel/ops/comparison.h>
#include <reel/ops/elementwise.h>

#include <numbers>

#include "../registry.h"
#include "elementwise.h"

namespace reel {

using namespace detail;

// y = erf x;  dx = d 2/√π e^(−x²)

constexpr OpInfo erf_op = unary_by_x<formulas::Erf>("erf", [](Gradient& g) {
  g.accumulate(0, g.output() * exp(-square(g.saved_input(0))) * (2 * std::numbers::inv_sqrtpi));
});

Tensor erf(const Arg& x) { return floating_unary(erf_op, x); }

// y = 1 − erf x;  dx = −d 2/√π e^(−x²)

constexpr OpInfo erfc_op = unary_by_x<formulas::Erfc>("erfc", [](Gradient& g) {
  g.accumulate(0, g.output() * exp(-square(g.saved_input(0))) * (-2 * std::numbers::inv_sqrtpi));
});

Tensor erfc(const Arg& x) { return floating_unary(erfc_op, x); }

// y = erf⁻¹ x;  dx = d √π/2 e^(y²)

constexpr OpInfo erfinv_op = unary_by_y<formulas::Erfinv>(
    "erfinv",
    [](Gradient& g) { g.accumulate(0, g.output() * exp(square(g.saved_output())) * (0.5 / std::numbers::inv_sqrtpi)); },
    Precision::full);

Tensor erfinv(const Arg& x) { return floating_unary(erfinv_op, x); }

// y = log |Γ(x)|;  dx = d ψ(x)

constexpr OpInfo lgamma_op = unary_by_x<formulas::Lgamma>(
    "lgamma", [](Gradient& g) { g.accumulate_product(0, g.output(), digamma(g.saved_input(0))); });

Tensor lgamma(const Arg& x) { return floating_unary(lgamma_op, x); }

// y = ψ(x);  dx = d ψ′(x)

constexpr OpInfo digamma_op = unary_by_x<formulas::Digamma>(
    "digamma", [](Gradient& g) { g.accumulate_product(0, g.output(), polygamma(1, g.saved_input(0))); });

Tensor digamma(const Arg& x) { return floating_unary(digamma_op, x); }

// y = ψ⁽ⁿ⁾(x);  dx = d ψ⁽ⁿ⁺¹⁾(x)

namespace {

struct PolygammaAttributes {
  std::int64_t order;
};

// n! overflows for larger orders.
constexpr int largest_order = 170;

}  // namespace

constexpr OpInfo polygamma_op{
    .name = "polygamma",
    .forward =
        [](Call& call) {
          kernels(call.output().device)
              .polygamma(call.output(), call.input(0), call.attributes<PolygammaAttributes>().order);
        },
    .gradient =
        [](Gradient& g) {
          int next = static_cast<int>(g.attributes<PolygammaAttributes>().order) + 1;
          g.accumulate_product(0, g.output(), polygamma(next, g.saved_input(0)));
        },
    .saves_input_for = {inputs({0})},
    .joining = by_elements,
};

Tensor polygamma(int order, const Arg& x) {
  const Tensor& tensor = tensor_of("polygamma", x);
  if (order < 0 || order > largest_order)
    fail<Error>("polygamma", x.location(), "the order {} lies outside [0, {}]", order, largest_order);
  if (order == 0) return floating_unary(digamma_op, x);
  if (!is_floating(tensor.dtype())) return polygamma(order, Arg(to(x, DType::f32), x.location()));
  return invoke(polygamma_op, {&tensor}, elementwise_result(tensor, tensor.dtype()), x.location(),
                bytes_of(PolygammaAttributes{order}));
}

// y = I₁(x);  dx = d (I₀(x) − y / x), d / 2 at 0

constexpr OpInfo i1_op{
    .name = "i1",
    .forward = unary_forward<formulas::I1>,
    .gradient =
        [](Gradient& g) {
          const Tensor& x = g.saved_input(0);
          Tensor zero = x == 0.0;
          Tensor slope = i0(x) - where(zero, 0.5, g.saved_output() / where(zero, 1.0, x));
          g.accumulate(0, g.output() * slope);
        },
    .saves_input_for = {inputs({0})},
    .saves_output_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_elements,
};

Tensor i1(const Arg& x) { return floating_unary(i1_op, x); }

// y = I₀(x);  dx = d I₁(x)

constexpr OpInfo i0_op = unary_by_x<formulas::I0>(
    "i0", [](Gradient& g) { g.accumulate_product(0, g.output(), i1(g.saved_input(0))); }, Precision::full);

Tensor i0(const Arg& x) { return floating_unary(i0_op, x); }

OpList detail::special_ops() {
  static constexpr const OpInfo* ops[] = {&erf_op,     &erfc_op,      &erfinv_op, &lgamma_op,
                                          &digamma_op, &polygamma_op, &i0_op,     &i1_op};
  return ops;
}

}  // namespace reel
