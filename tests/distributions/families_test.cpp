#include <reel/reel.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "catch.h"
#include "checks.h"
#include "plain.h"

// Densities, entropies and divergences of the distributions, by their formulas and by numerical integration.

using namespace reel;
using namespace reel::distributions;
using namespace reel_test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor number(double value) { return tensor(Row{value}); }

// Points and weights of the trapezoidal rule for ∫ f(x) dx: in t, with x(t) and its derivative.
struct Quadrature {
  Tensor points, weights;
};
Quadrature quadrature(double first, double last, const std::function<double(double)>& x,
                      const std::function<double(double)>& slope) {
  Row points, weights;
  const int n = 20'000;
  double h = (last - first) / n;
  for (int i = 0; i <= n; ++i) {
    points.push_back(x(first + h * i));
    weights.push_back(h * slope(first + h * i));
  }
  return {tensor(points), tensor(weights)};
}
Quadrature on_line() {
  return quadrature(
      -60, 90, [](double t) { return t; }, [](double) { return 1.0; });
}
Quadrature above_zero() {
  return quadrature(
      -60, 6, [](double t) { return std::exp(t); }, [](double t) { return std::exp(t); });
}
Quadrature in_unit_interval() {
  auto logistic = [](double t) { return 1 / (1 + std::exp(-t)); };
  return quadrature(-34, 34, logistic, [=](double t) { return logistic(t) * logistic(-t); });
}
Quadrature whole_numbers() {
  Row points;
  for (int k = 0; k < 200; ++k) points.push_back(k);
  return {tensor(points), ones({200}, {.dtype = DType::f64})};
}

// Checks of distributions p, of the batch shape (1), by integrals of their densities.
template <class P>
void check_integrals(const P& p, const Quadrature& rule) {
  Tensor log_p = p.log_prob(rule.points), chance = exp(log_p) * rule.weights;
  Tensor finite = where(chance > 0, log_p, 0);
  CHECK(sum(chance).item() == Approx(1).epsilon(1e-7));
  double mean = sum(chance * rule.points).item();
  CHECK(p.mean().item() == Approx(mean).epsilon(1e-7));
  CHECK(p.variance().item() == Approx(sum(chance * square(rule.points - mean)).item()).epsilon(1e-7));
  if constexpr (requires { p.entropy(); })
    CHECK(p.entropy().item() == Approx(-sum(chance * finite).item()).epsilon(1e-7));
}
template <class P, class Q>
void check_divergence(const P& p, const Q& q, const Quadrature& rule) {
  Tensor log_p = p.log_prob(rule.points), chance = exp(log_p) * rule.weights;
  Tensor difference = where(chance > 0, log_p - q.log_prob(rule.points), 0);
  CHECK(kl_divergence(p, q).item() == Approx(sum(chance * difference).item()).epsilon(1e-6));
}

}  // namespace

TEST_CASE("log_prob is the logarithm of the formula of the density") {
  check_close(Uniform(number(-1), number(3)).log_prob(tensor(Row{-1, 0, 3})), {-std::log(4), -std::log(4), -infinity});
  double z = (2.0 - 0.5) / 0.7;
  check_close(Gumbel(number(0.5), number(0.7)).log_prob(number(2)), {-(z + std::exp(-z)) - std::log(0.7)});
  check_close(Gamma(number(2.5), number(3)).log_prob(tensor(Row{0.3, 7})),
              {std::log(std::pow(3, 2.5) * std::pow(0.3, 1.5) * std::exp(-0.9) / std::tgamma(2.5)),
               std::log(std::pow(3, 2.5) * std::pow(7, 1.5) * std::exp(-21) / std::tgamma(2.5))});
  check_close(Gamma(tensor(Row{0.5, 1, 2}), number(3)).log_prob(number(0)), {infinity, std::log(3), -infinity});
  double b = std::tgamma(2.5) * std::tgamma(0.7) / std::tgamma(3.2);
  check_close(Beta(number(2.5), number(0.7)).log_prob(number(0.2)),
              {std::log(std::pow(0.2, 1.5) * std::pow(0.8, -0.3) / b)});
  check_close(Beta(number(1), number(1)).log_prob(tensor(Row{0, 0.5, 1})), {0, 0, 0});
  check_close(Dirichlet(tensor(Row{2, 0.5, 3})).log_prob(tensor(Row{0.2, 0.3, 0.5})),
              {std::log(0.2 * std::pow(0.3, -0.5) * 0.25 * std::tgamma(5.5) / (std::tgamma(0.5) * 2))});
  check_close(Poisson(number(2.5)).log_prob(tensor(Row{0, 1, 4})),
              {-2.5, std::log(2.5) - 2.5, 4 * std::log(2.5) - 2.5 - std::log(24)});
  check_close(Poisson(number(2.5)).log_prob(tensor(std::vector<std::int64_t>{1})), {std::log(2.5) - 2.5});
  check_close(Poisson(number(0)).log_prob(tensor(Row{0, 1})), {0, -infinity});
}

TEST_CASE("entropies are those of their formulas") {
  check_close(Uniform(number(-1), number(3)).entropy(), {std::log(4)});
  check_close(Gumbel(number(0.5), number(0.7)).entropy(), {1 + 0.57721566490153286 + std::log(0.7)});
  check_close(Gamma(number(2.5), number(3)).entropy(),
              {2.5 - std::log(3) + std::lgamma(2.5) - 1.5 * plain_digamma(2.5)});
  double log_b = std::lgamma(2.5) + std::lgamma(0.7) - std::lgamma(3.2);
  double expected = log_b - 1.5 * plain_digamma(2.5) + 0.3 * plain_digamma(0.7) + 1.2 * plain_digamma(3.2);
  check_close(Beta(number(2.5), number(0.7)).entropy(), {expected});
  check_close(Dirichlet(tensor(Row{2.5, 0.7})).entropy(), {expected});
  check_close(MultivariateNormal(tensor(Row{1, 2}), {.scale_tril = tensor<double>({{2, 0}, {5, 3}})}).entropy(),
              {1 + std::log(2 * std::numbers::pi) + std::log(6)});
}

TEST_CASE("densities integrate to 1, to the mean, to the variance and to the entropy") {
  check_integrals(Normal(number(1), number(0.7)), on_line());
  check_integrals(Gumbel(number(1), number(0.7)), on_line());
  for (double a : {0.7, 1.0, 5.5}) check_integrals(Gamma(number(a), number(1.3)), above_zero());
  for (double a : {0.8, 1.0, 5.5}) check_integrals(Beta(number(a), number(1.3)), in_unit_interval());
  for (double rate : {0.3, 4.0, 49.9, 50.0, 60.0}) check_integrals(Poisson(number(rate)), whole_numbers());
  Quadrature inside = quadrature(
      -1, 3, [](double t) { return t; }, [](double) { return 1.0; });
  // The density is halved at the first point by the rule, and 0 at the last.
  CHECK(sum(exp(Uniform(number(-1), number(3)).log_prob(inside.points)) * inside.weights).item() ==
        Approx(1).epsilon(1e-4));
}

TEST_CASE("entropies of Poisson distributions of several rates at once are those of each") {
  // The sums in 60 digits; of the last two the series.
  Tensor rates = tensor<double>({{0, 1e-3, 1, 49}, {51, 200, 1e6, 1e12}});
  check_close(Poisson(rates).entropy(),
              {0, 0.007908101804632483, 1.304842242256251561, 3.363130178666618342, 3.383200927581793582,
               4.067679501476731296, 8.326693728853435061, 15.234449091168864143});
  CHECK(Poisson(rates).entropy().shape() == Shape{2, 4});
  auto scope = debug::detect_anomaly();
  Tensor halves = Poisson(to(tensor<double>({1, 200}), bf16)).entropy();
  CHECK(halves.dtype() == bf16);
  CHECK(Poisson(zeros({0, 2})).entropy().shape() == Shape{0, 2});
  CHECK(Poisson(zeros({1, 1, 1, 1, 1, 1, 1, 2})).entropy().shape() == Shape{1, 1, 1, 1, 1, 1, 1, 2});
  Tensor ends = tensor<double>({0, 49.5, 80}).requires_grad();
  Tape tape;
  Row slopes = tape.gradient(sum(Poisson(ends).entropy()), ends).to_vector<double>();
  CHECK(slopes[0] == 0);
  // Between the entropies of rates beside it.
  CHECK(slopes[1] ==
        Approx((Poisson(number(49.501)).entropy().item() - Poisson(number(49.499)).entropy().item()) / 2e-3));
}

TEST_CASE("divergences are the integrals of p log(p / q)") {
  Quadrature positive = above_zero(), unit = in_unit_interval(), line = on_line(), counts = whole_numbers();
  Gamma gamma(number(2.5), number(1.3));
  Beta beta(number(2.5), number(1.7));
  Gumbel gumbel(number(1), number(0.7));
  Normal normal(number(0.5), number(1.5));
  check_divergence(gamma, Gamma(number(0.7), number(2)), positive);
  check_divergence(beta, Beta(number(0.7), number(2)), unit);
  check_divergence(gumbel, Gumbel(number(0), number(1.1)), line);
  check_divergence(Poisson(number(4)), Poisson(number(7)), counts);
  check_divergence(beta, gamma, unit);
  check_divergence(beta, normal, unit);
  check_divergence(beta, Uniform(number(-0.5), number(2)), unit);
  check_divergence(gamma, gumbel, positive);
  check_divergence(gamma, normal, positive);
  check_divergence(gumbel, normal, line);
  check_divergence(Normal(number(0.5), number(0.8)), gumbel,
                   quadrature(
                       -7, 9, [](double t) { return t; }, [](double) { return 1.0; }));
  auto same = [](double t) { return t; };
  // Gauss–Legendre quadrature with 3 points in each of many intervals: the ends of [low, high] are not among them.
  Row points, weights;
  const double at[] = {-std::sqrt(0.6), 0, std::sqrt(0.6)}, of[] = {5.0 / 9, 8.0 / 9, 5.0 / 9};
  for (int i = 0; i < 200; ++i)
    for (int k = 0; k < 3; ++k) {
      points.push_back(same(-1 + 4 * (i + 0.5 + 0.5 * at[k]) / 200));
      weights.push_back(4 * 0.5 * of[k] / 200);
    }
  Quadrature inside{tensor(points), tensor(weights)};
  Uniform uniform(number(-1), number(3));
  check_integrals(uniform, inside);
  check_divergence(uniform, Uniform(number(-2), number(5)), inside);
  check_divergence(uniform, normal, inside);
  check_divergence(uniform, gumbel, inside);
  Bernoulli coin({.probabilities = number(0.3)});
  double log_rate = std::log(2.5);
  check_close(kl_divergence(coin, Poisson(number(2.5))),
              {0.3 * (std::log(0.3) - log_rate + 2.5) + 0.7 * (std::log(0.7) + 2.5)});
}

TEST_CASE("a divergence is 0 of a distribution from itself, and infinite where q excludes values of p") {
  Gamma gamma(number(2.5), number(1.3));
  Beta beta(number(2.5), number(1.7));
  Gumbel gumbel(number(1), number(0.7));
  Uniform uniform(number(-1), number(3));
  Dirichlet dirichlet(tensor(Row{2, 0.5, 3}));
  MultivariateNormal normal(tensor(Row{1, 2}), {.scale_tril = tensor<double>({{2, 0}, {5, 3}})});
  for (const Tensor& value :
       {kl_divergence(gamma, gamma), kl_divergence(beta, beta), kl_divergence(gumbel, gumbel),
        kl_divergence(uniform, uniform), kl_divergence(dirichlet, dirichlet), kl_divergence(normal, normal),
        kl_divergence(Poisson(number(3)), Poisson(number(3))), kl_divergence(Poisson(number(0)), Poisson(number(0)))})
    CHECK(std::abs(value.item()) < 1e-12);
  CHECK(kl_divergence(uniform, Uniform(number(0), number(3))).item() == infinity);
  CHECK(kl_divergence(beta, Uniform(number(0.5), number(3))).item() == infinity);
  CHECK(kl_divergence(Poisson(number(2)), Poisson(number(0))).item() == infinity);
}

TEST_CASE("a Dirichlet distribution over two classes is a beta distribution, and over three it integrates to 1") {
  Tensor x = tensor(Row{0.2, 0.5, 0.9});
  Row two = Dirichlet(tensor(Row{2.5, 0.7})).log_prob(stack({x, 1 - x}, -1)).to_vector<double>();
  check_close(Beta(number(2.5), number(0.7)).log_prob(x), two);
  check_close(kl_divergence(Dirichlet(tensor(Row{2.5, 0.7})), Dirichlet(tensor(Row{1, 3}))),
              {kl_divergence(Beta(number(2.5), number(0.7)), Beta(number(1), number(3))).item()});
  // x = (u, (1 − u) v, (1 − u) (1 − v)), whose Jacobian is 1 − u, with logistic u and v.
  std::vector<Row> points;
  Row values, weights;
  for (double s = -24; s <= 24; s += 0.25)
    for (double t = -24; t <= 24; t += 0.25) {
      double u = 1 / (1 + std::exp(-s)), v = 1 / (1 + std::exp(-t)), rest = 1 / (1 + std::exp(s));
      for (double one : {u, rest * v, rest / (1 + std::exp(t))}) values.push_back(one);
      weights.push_back(0.25 * 0.25 * rest * u * rest * v / (1 + std::exp(t)));
    }
  Tensor grid = tensor(values, {std::ssize(weights), 3}), rule = tensor(weights);
  Dirichlet p(tensor(Row{2, 1.5, 3})), q(tensor(Row{1, 2, 1.2}));
  Tensor log_p = p.log_prob(grid), chance = exp(log_p) * rule;
  CHECK(sum(chance).item() == Approx(1).epsilon(1e-6));
  Row mean = matmul(chance, grid).to_vector<double>(), square_mean = matmul(chance, square(grid)).to_vector<double>();
  check_close(p.mean(), mean, 1e-6);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(p.variance().to_vector<double>()[i] == Approx(square_mean[i] - mean[i] * mean[i]).epsilon(1e-5));
  CHECK(p.entropy().item() == Approx(-sum(chance * log_p).item()).epsilon(1e-6));
  CHECK(kl_divergence(p, q).item() == Approx(sum(chance * (log_p - q.log_prob(grid))).item()).epsilon(1e-6));
}

TEST_CASE("multivariate normal distributions of a covariance, of its inverse and of its factor are equal") {
  // L = (2 0; 1 3), Σ = L Lᵀ = (4 2; 2 10), det Σ = 36, Σ⁻¹ = (10 −2; −2 4) / 36
  Tensor loc = tensor(Row{1, -1}), l = tensor<double>({{2, 0}, {1, 3}}), sigma = tensor<double>({{4, 2}, {2, 10}}),
         inverse = tensor<double>({{10, -2}, {-2, 4}}) / 36;
  for (const MultivariateNormal& p :
       {MultivariateNormal(loc, {.covariance_matrix = sigma}), MultivariateNormal(loc, {.precision_matrix = inverse}),
        MultivariateNormal(loc, {.scale_tril = l})}) {
    check_close(p.mean(), {1, -1});
    check_close(p.scale_tril(), {2, 0, 1, 3});
    check_close(p.covariance_matrix(), {4, 2, 2, 10});
    check_close(p.precision_matrix(), {10.0 / 36, -2.0 / 36, -2.0 / 36, 4.0 / 36});
    check_close(p.variance(), {4, 10});
    // d = (2, 3): dᵀ Σ⁻¹ d = (40 − 24 + 36) / 36
    double expected = -0.5 * 52 / 36 - std::log(2 * std::numbers::pi) - 0.5 * std::log(36);
    check_close(p.log_prob(tensor(Row{3, 2})), {expected});
    check_close(p.log_prob(tensor<double>({{3, 2}, {1, -1}})),
                {expected, -std::log(2 * std::numbers::pi) - 0.5 * std::log(36)});
    // q = N(0, 1): (tr Σ + |μ|² − 2 − log det Σ) / 2
    MultivariateNormal standard(zeros({2}, {.dtype = DType::f64}), {.scale_tril = eye(2, {.dtype = DType::f64})});
    check_close(kl_divergence(p, standard), {0.5 * (14 + 2 - 2 - std::log(36))});
    // and from it: (tr Σ⁻¹ + μᵀ Σ⁻¹ μ − 2 + log det Σ) / 2, μᵀ Σ⁻¹ μ = (10 + 4 + 4) / 36
    check_close(kl_divergence(standard, p), {0.5 * (14.0 / 36 + 18.0 / 36 - 2 + std::log(36))});
  }
}

TEST_CASE("parameters and values of the further distributions broadcast, with PyTorch's shapes") {
  Tensor low = zeros({3, 1}), high = ones({2});
  CHECK(Uniform(low, high).batch_shape() == Shape{3, 2});
  CHECK(Uniform(low, high).event_shape() == Shape{});
  CHECK(Uniform(low, high).rsample({5}).shape() == Shape{5, 3, 2});
  CHECK(Uniform(low, high).log_prob(full({4, 1, 1}, 0.5)).shape() == Shape{4, 3, 2});
  CHECK(Gumbel(low, high).sample({5}).shape() == Shape{5, 3, 2});
  CHECK(Gamma(low + 1, high).sample({5}).shape() == Shape{5, 3, 2});
  CHECK(Beta(low + 1, high).sample({5, 4}).shape() == Shape{5, 4, 3, 2});
  CHECK(Beta(low + 1, 2).log_prob(full({4, 1, 1}, 0.5)).shape() == Shape{4, 3, 1});
  CHECK(Gamma(1, 2).sample().shape() == Shape{});
  CHECK(Gamma(1, 2).sample().dtype() == DType::f32);
  CHECK(Gamma(number(1), 2).sample({7}).dtype() == DType::f64);
  CHECK(Poisson(3).sample({2}).shape() == Shape{2});
  CHECK(Poisson(low).sample({0}).shape() == Shape{0, 3, 1});
  CHECK(Gamma(zeros({0}), 1).sample({2}).shape() == Shape{2, 0});
  Dirichlet d(ones({3, 4}));
  CHECK(d.batch_shape() == Shape{3});
  CHECK(d.event_shape() == Shape{4});
  CHECK(d.sample({2}).shape() == Shape{2, 3, 4});
  CHECK(d.log_prob(d.sample({2})).shape() == Shape{2, 3});
  CHECK(d.entropy().shape() == Shape{3});
  MultivariateNormal p(zeros({3, 1, 2}), {.scale_tril = expand(eye(2), {5, 2, 2})});
  CHECK(p.batch_shape() == Shape{3, 5});
  CHECK(p.event_shape() == Shape{2});
  CHECK(p.sample({7}).shape() == Shape{7, 3, 5, 2});
  CHECK(p.log_prob(p.sample({7})).shape() == Shape{7, 3, 5});
  CHECK(p.entropy().shape() == Shape{3, 5});
  CHECK(kl_divergence(p, MultivariateNormal(zeros({2}), {.scale_tril = eye(2)})).shape() == Shape{3, 5});
  CHECK(MultivariateNormal(zeros({2}), {.scale_tril = eye(2)}).log_prob(zeros({4, 3, 2})).shape() == Shape{4, 3});
}
