#include "standard_gamma.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

#include <reel/custom.h>
#include <reel/ops.h>
#include <reel/ops/stop_gradient.h>

#include "../ops/if_needed.h"
#include "rejection.h"

namespace reel::detail {

namespace {

// The positive half of the points and weights of Gauss–Legendre quadrature on [−1, 1] with 24 points.
constexpr double legendre[12][2] = {
    {0.0640568928626056261, 0.127938195346752157}, {0.191118867473616309, 0.125837456346828296},
    {0.315042679696163374, 0.121670472927803391},  {0.433793507626045138, 0.115505668053725601},
    {0.545421471388839536, 0.107444270115965635},  {0.648093651936975569, 0.0976186521041138883},
    {0.740124191578554364, 0.0861901615319532759}, {0.820001985973902922, 0.0733464814110803057},
    {0.886415527004401034, 0.0592985849154367807}, {0.938274552002732759, 0.0442774388174198062},
    {0.974728555971309498, 0.0285313886289336632}, {0.99518721999702136, 0.0123412297999871995}};

Tensor draw_logarithm(const Tensor& concentration, Generator* generator) {
  const RandomOptions drawn{.dtype = DType::f64, .device = concentration.device(), .generator = generator};
  Tensor alpha = reshape(concentration, {-1});
  // A concentration below 1 is raised by 1, and the sample multiplied by u^(1 / α).
  Tensor small = alpha < 1;
  Tensor d = where(small, alpha + 1, alpha) - 1.0 / 3;
  Tensor logarithm = rejection_sample([&](const Tensor& index) {
    Tensor scale = selected(d, index);
    Tensor x = randn(scale.shape(), drawn), u = 1 - rand(scale.shape(), drawn);
    Tensor root = 1 + x * rsqrt(9 * scale);
    Tensor log_v = 3 * log(clamp(root, std::numeric_limits<double>::min()));
    Tensor bound = 0.5 * square(x) + scale * (1 - exp(log_v) + log_v);
    return Proposal{log(scale) + log_v, logical_or(root <= 0, log(u) > bound)};
  });
  Tensor boost = log(1 - rand(alpha.shape(), drawn)) / alpha;
  return reshape(where(small, logarithm + boost, logarithm), concentration.shape());
}

// ∂ log z / ∂α at a fixed value of the distribution function P(z; α), which is −(∂P/∂α) / (z p(z; α)). With t = z e^−s,
//
//     −(∂P/∂α) / p = ∫₀^z (ψ(α) − log t) (t / z)^(α − 1) e^(z − t) dt
//                  = z ∫₀^∞ (ψ(α) − log z + s) e^(−α s + z (1 − e^−s)) ds,
//
// and because ∫₀^∞ (log t − ψ(α)) t^(α − 1) e^−t dt = 0, that integral is also the one over negative s, negated. The one
// of the two is computed in which z is not the larger part of the distribution, so that little cancels. In the lower
// one α is first raised by 1, by the recurrence of P, because for small α the integrand is otherwise too wide:
//
//     ∂ log z / ∂α (z; α) = (z ∂ log z / ∂α (z; α + 1) + ψ(α + 1) − log z) / α.
//
// The relative error is below 1e-9.
Tensor implicit_derivative(const Tensor& log_z, const Tensor& alpha) {
  constexpr double reach = 26;  // e^−26 and less is not integrated
  Tensor z = exp(log_z), raised = alpha + 1;
  Tensor lower = z < raised;
  Tensor a = where(lower, raised, alpha), end;
  {
    // The end of the integral, from bounds of the exponent: it may be inexact, and needs no gradient.
    Tensor fixed_z = stop_gradient(z), fixed_a = stop_gradient(a);
    Tensor margin = abs(fixed_a - fixed_z), twice = 2 * margin - reach;
    Tensor below = 4 * reach / (twice + sqrt(square(twice) + 8 * reach * fixed_a));
    Tensor above = 2 * reach / (margin + sqrt(square(margin) + 2 * reach * fixed_z));
    end = where(lower, below, -above);
  }
  Tensor c = digamma(a) - log_z, column_of_end = unsqueeze(end, -1), column_of_a = unsqueeze(a, -1),
         column_of_z = unsqueeze(z, -1), column_of_c = unsqueeze(c, -1), integral;
  // The number of points at a time keeps the integrand in the cache.
  std::int64_t count = std::ssize(legendre), together = std::clamp<std::int64_t>(65536 / (alpha.numel() + 1), 1, count);
  for (std::int64_t first = 0; first < count; first += together) {
    std::vector<double> points, weights;
    for (std::int64_t i = first; i < std::min(first + together, count); ++i)
      for (double sign : {-1.0, 1.0}) {
        points.push_back((1 + sign * legendre[i][0]) / 2);
        weights.push_back(legendre[i][1] / 2);
      }
    Tensor s = column_of_end * to_if_needed(tensor(points), alpha.device());
    Tensor integrand = (column_of_c + s) * exp(-column_of_a * s - column_of_z * expm1(-s));
    Tensor part = end * sum(integrand * to_if_needed(tensor(weights), alpha.device()), -1);
    integral = integral.defined() ? integral + part : part;
  }
  return where(lower, (z * integral + c) / alpha, integral);
}

}  // namespace

Tensor log_standard_gamma(const Tensor& concentration, Generator* generator) {
  return custom_gradient(
      "standard_gamma", [generator](const Tensor& alpha) { return draw_logarithm(alpha, generator); },
      [](const Tensor& dy, const Tensor& log_z, const Tensor& alpha) {
        // Flattened, because the points of the quadrature are one more axis.
        Tensor derivative = implicit_derivative(reshape(log_z, {-1}), reshape(alpha, {-1}));
        return dy * reshape(derivative, alpha.shape());
      },
      to_if_needed(concentration, DType::f64));
}

}  // namespace reel::detail
