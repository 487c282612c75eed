#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

// Special functions and distribution functions in plain loops.

namespace reel_test {

using Row = std::vector<double>;

/// ψ(x) for x > 0: by its recurrence up to 20 and then its asymptotic series.
inline double plain_digamma(double x) {
  double result = 0;
  for (; x < 20; ++x) result -= 1 / x;
  double s = 1 / (x * x);
  return result + std::log(x) - 0.5 / x - s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s / 240)));
}

/// The density of the gamma distribution with the rate 1.
inline long double gamma_density(long double a, long double z) {
  return std::exp((a - 1) * std::log(z) - z - std::lgamma(a));
}

/// P(a, z), the distribution function of the gamma distribution with the rate 1: by its power series.
inline long double gamma_below(long double a, long double z) {
  long double term = z / a, sum = term;
  for (int k = 1; term > sum * 1e-20L; ++k) sum += term *= z / (a + k);
  return gamma_density(a, z) * sum;
}

/// 1 − P(a, z): by its continued fraction, for z ≥ a + 1.
inline long double gamma_above(long double a, long double z) {
  long double b = z + 1 - a, c = 1e300L, d = 1 / b, h = d;
  for (int k = 1; k < 1000000; ++k) {
    long double factor = -k * (k - a);
    b += 2;
    d = 1 / (factor * d + b);
    c = b + factor / c;
    h *= d * c;
    if (std::fabs(d * c - 1) < 1e-19L) break;
  }
  return gamma_density(a, z) * z * h;
}

inline double gamma_cdf(double a, double z) {
  if (z <= 0) return 0;
  return static_cast<double>(z < a + 1 ? gamma_below(a, z) : 1 - gamma_above(a, z));
}

/// The distribution function of the beta distribution, by the power series of the incomplete beta function.
inline double beta_cdf(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - beta_cdf(b, a, 1 - x);
  // I_x(a, b) = x^a (1 − x)^b / (a B(a, b)) · Σ_n Π_{k ≤ n} x (a + b + k − 1) / (a + k)
  double term = 1, sum = 1;
  for (int k = 1; term > sum * 1e-16; ++k) sum += term *= x * (a + b + k - 1) / (a + k);
  return std::exp(a * std::log(x) + b * std::log1p(-x) + std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b)) * sum /
         a;
}

inline double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

/// sup |F_n − F| for a sample and a distribution function F, which may have steps at whole numbers if `discrete`.
inline double largest_difference(Row sample, const std::function<double(double)>& cdf, bool discrete = false) {
  std::sort(sample.begin(), sample.end());
  auto n = static_cast<double>(sample.size());
  double largest = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    std::size_t end = i + 1;
    while (end < sample.size() && sample[end] == sample[i]) ++end;
    double below = discrete ? cdf(sample[i] - 1) : cdf(sample[i]);
    largest = std::max({largest, std::abs(static_cast<double>(end) / n - cdf(sample[i])),
                        std::abs(static_cast<double>(i) / n - below)});
    i = end - 1;
  }
  return largest;
}

/// The difference that a sample of n exceeds once in 10⁹ times, by the inequality of Dvoretzky, Kiefer and Wolfowitz:
/// P(sup |F_n − F| > ε) ≤ 2 e^(−2 n ε²).
inline double difference_bound(double n) { return std::sqrt(std::log(2e9) / (2 * n)); }

}  // namespace reel_test
