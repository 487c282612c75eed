#pragma once

#include <cmath>
#include <limits>

#include "../../core/target.h"

namespace reel::formulas::inline REEL_TARGET {

REEL_HOST_DEVICE inline double reciprocal_power(double q, int s) {
  double product = 1, square = 1 / q;
  for (; s != 0; s >>= 1, square *= square)
    if (s & 1) product *= square;
  return product;
}

// Σ 1 / (q + k)^s over k ≥ 0, for q > 0 and s ≥ 2: at least ten terms, and the remainder by the Euler-Maclaurin
// formula.
REEL_HOST_DEVICE inline double hurwitz_zeta(int s, double q) {
  constexpr double last_place = std::numeric_limits<double>::epsilon() / 4;
  double first = reciprocal_power(q, s), sum = first;
  for (int k = 1; k < 10 || q < 10; ++k) {
    q += 1;
    double term = reciprocal_power(q, s);
    sum += term;
    if (term < last_place * sum) return sum;
  }
  // The last term has weight one half.
  double power = reciprocal_power(q, s);
  sum += power * q / (s - 1) - power / 2;
  // B₂ₖ / (2k)!
  constexpr double coefficients[] = {1.0 / 12,
                                     -1.0 / 720,
                                     1.0 / 30240,
                                     -1.0 / 1209600,
                                     1.0 / 47900160,
                                     -691.0 / 1307674368000,
                                     1.0 / 74724249600,
                                     -3617.0 / 10670622842880000,
                                     43867.0 / 5109094217170944000};
  double factor = s * power / q;
  for (int k = 0; k < 9; ++k) {
    double term = coefficients[k] * factor;
    sum += term;
    if (std::abs(term) < last_place * sum) break;
    factor *= static_cast<double>((s + 2 * k + 1) * (s + 2 * k + 2)) / (q * q);
  }
  return sum;
}

// The n-th derivative of ψ is ± n! Σ 1 / (x + k)^(n + 1). Left of 0 it is the sum over all integers k, which depends on
// x's fraction alone, less the terms with k < 0.
REEL_HOST_DEVICE inline double polygamma(int n, double x) {
  int s = n + 1;
  double sign = n % 2 == 0 ? -1 : 1;  // (−1)^(n + 1), which is (−1)^s
  double fraction = x - std::floor(x), sum;
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return x > 0 ? 0 : std::numeric_limits<double>::quiet_NaN();
  if (x > 0)
    sum = hurwitz_zeta(s, x);
  else if (fraction == 0)
    sum = std::numeric_limits<double>::infinity();
  else
    sum = hurwitz_zeta(s, fraction) + sign * (hurwitz_zeta(s, std::ceil(x) - x) - hurwitz_zeta(s, 1 - x));
  return sign * (std::tgamma(s) * sum);
}

}  // namespace reel::formulas::inline REEL_TARGET
