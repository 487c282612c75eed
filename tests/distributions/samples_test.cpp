#include <reel/reel.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "catch.h"
#include "plain.h"

// Samples of the distributions, by their distribution functions, and the gradients of samples.

using namespace reel;
using namespace reel::distributions;
using namespace reel_test;

namespace {

constexpr std::uint64_t seed = 11;
constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor number(double value) { return tensor(Row{value}); }

// The derivative of log z by α at a fixed value of P(α, z), from differences of fourth order.
long double derivative_of_log(long double a, long double z) {
  long double h = 1e-3L * std::min(a, std::sqrt(a));
  bool lower = z < a + 1;
  auto p = [&](long double at) { return lower ? gamma_below(at, z) : -gamma_above(at, z); };
  long double slope = (p(a - 2 * h) - 8 * p(a - h) + 8 * p(a + h) - p(a + 2 * h)) / (12 * h);
  return -slope / (z * gamma_density(a, z));
}

}  // namespace

TEST_CASE("samples have the distribution functions of their distributions") {
  struct Case {
    std::string name;
    std::function<Tensor(const Shape&, DrawOptions)> sample;
    std::function<double(double)> cdf;
    bool discrete = false;
  };
  std::vector<Case> cases{
      {"uniform", [](const Shape& n, DrawOptions o) { return Uniform(number(-1), number(3)).sample(n, o); },
       [](double x) { return std::clamp((x + 1) / 4, 0.0, 1.0); }},
      {"gumbel", [](const Shape& n, DrawOptions o) { return Gumbel(number(1), number(2)).sample(n, o); },
       [](double x) { return std::exp(-std::exp(-(x - 1) / 2)); }},
      {"dirichlet",
       [](const Shape& n, DrawOptions o) {
         return select(Dirichlet(tensor(Row{0.5, 2, 3})).sample(n, o), -1, 1);
       },
       [](double x) { return beta_cdf(2, 3.5, x); }},
      {"multivariate normal",
       [](const Shape& n, DrawOptions o) {
         MultivariateNormal p(tensor(Row{1, 2}), {.covariance_matrix = tensor<double>({{4, 1}, {1, 2}})});
         // The difference has the variance 4 − 2 · 1 + 2.
         Tensor x = p.sample(n, o);
         return (select(x, -1, 0) - select(x, -1, 1) + 1) / 2;
       },
       normal_cdf},
  };
  for (double a : {0.05, 0.3, 1.0, 2.5, 60.0})
    cases.push_back({"gamma " + std::to_string(a),
                     [a](const Shape& n, DrawOptions o) { return Gamma(number(a), number(3)).sample(n, o); },
                     [a](double x) { return gamma_cdf(a, 3 * x); }});
  for (double a : {0.2, 1.0, 4.0})
    cases.push_back({"beta " + std::to_string(a),
                     [a](const Shape& n, DrawOptions o) { return Beta(number(a), number(1.5)).sample(n, o); },
                     [a](double x) { return beta_cdf(a, 1.5, x); }});
  for (double rate : {0.1, 3.0, 9.9, 10.0, 25.0, 400.0})
    cases.push_back({"poisson " + std::to_string(rate),
                     [rate](const Shape& n, DrawOptions o) { return Poisson(number(rate)).sample(n, o); },
                     // P(k events or fewer) = 1 − P(k + 1, λ)
                     [rate](double k) { return k < 0 ? 0 : 1 - gamma_cdf(k + 1, rate); }, true});
  const std::int64_t n = 20'000;
  for (const Case& c : cases) {
    Generator generator(seed);
    Row sample = c.sample({n}, {.generator = &generator}).to_vector<double>();
    INFO(c.name << ", seed " << seed);
    REQUIRE(std::ssize(sample) == n);
    CHECK(largest_difference(sample, c.cdf, c.discrete) <= difference_bound(static_cast<double>(n)));
  }
}

TEST_CASE("samples of several distributions at once have the means and variances of each") {
  Generator generator(seed);
  const std::int64_t n = 40'000;
  auto check = [&](const std::string& name, const Tensor& x, const Tensor& mean_of, const Tensor& variance_of) {
    Row means = mean(x, 0).to_vector<double>(), expected = mean_of.to_vector<double>(),
        variances = variance_of.to_vector<double>(), squares = mean(square(x - mean_of), 0).to_vector<double>(),
        fourth = mean(square(square(x - mean_of)), 0).to_vector<double>();
    for (std::size_t i = 0; i < means.size(); ++i) {
      INFO(name << " " << i << ", seed " << seed);
      // Within 6 standard errors, but for once in 10⁸ times; that of a variance is from the sample's fourth moment.
      CHECK(std::abs(means[i] - expected[i]) <= 6 * std::sqrt(variances[i] / n));
      CHECK(std::abs(squares[i] - variances[i]) <= 6 * std::sqrt(fourth[i] / n));
    }
  };
  DrawOptions draw{.generator = &generator};
  Gamma gamma(tensor(Row{0.5, 3, 20}), tensor(Row{1, 0.1, 4}));
  check("gamma", gamma.sample({n}, draw), gamma.mean(), gamma.variance());
  Beta beta(tensor(Row{0.5, 3, 20}), tensor(Row{1, 0.7, 4}));
  check("beta", beta.sample({n}, draw), beta.mean(), beta.variance());
  Dirichlet dirichlet(tensor(Row{0.5, 3, 20}));
  check("dirichlet", dirichlet.sample({n}, draw), dirichlet.mean(), dirichlet.variance());
  Poisson poisson(tensor(Row{0, 0.5, 8, 12, 1e6}));
  check("poisson", poisson.sample({n}, draw), poisson.mean(), poisson.variance());
  Gumbel gumbel(tensor(Row{-1, 2}), tensor(Row{1, 0.2}));
  check("gumbel", gumbel.sample({n}, draw), gumbel.mean(), gumbel.variance());
  Uniform uniform(tensor(Row{-1, 2}), tensor(Row{1, 2.5}));
  check("uniform", uniform.sample({n}, draw), uniform.mean(), uniform.variance());
  MultivariateNormal normal(tensor<double>({{0, 1}, {2, 3}}),
                            {.scale_tril = tensor<double>({{{1, 0}, {2, 3}}, {{0.5, 0}, {-1, 1}}})});
  check("multivariate normal", normal.sample({n}, draw), normal.mean(), normal.variance());
}

TEST_CASE("gradients of gamma samples are those of the inverse of the distribution function") {
  for (double a : {1e-3, 0.05, 0.4, 1.0, 2.5, 17.0, 300.0, 1e4}) {
    Generator generator(seed);
    const std::int64_t n = 40;
    Tensor alpha = full({n}, a, {.dtype = DType::f64}).requires_grad(), rate = number(2).requires_grad();
    Tape outer({.persistent = true});
    Tensor x, first;
    {
      Tape inner;
      x = Gamma(alpha, rate).rsample({}, {.generator = &generator});
      first = inner.gradient(sum(log(x)), alpha);
    }
    Tensor second = outer.gradient(sum(first), alpha);
    Row drawn = x.to_vector<double>(), slopes = first.to_vector<double>(), curvatures = second.to_vector<double>();
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      if (drawn[i] < 1e-300) continue;  // at the smallest normal number, where no gradient flows
      long double z = 2 * static_cast<long double>(drawn[i]), slope = derivative_of_log(a, z);
      INFO("α " << a << ", x " << drawn[i] << ", seed " << seed);
      CHECK(slopes[i] == Approx(static_cast<double>(slope)).epsilon(1e-7));
      // Along the curve on which P(α, z) is constant, to third order by a step of Runge and Kutta.
      long double h = 1e-3L * std::min<long double>(a, std::sqrt(static_cast<long double>(a)));
      auto at = [&](long double step) {
        long double log_z = std::log(z), k1 = slope,
                    k2 = derivative_of_log(a + step / 2, std::exp(log_z + step / 2 * k1)),
                    k3 = derivative_of_log(a + step / 2, std::exp(log_z + step / 2 * k2)),
                    k4 = derivative_of_log(a + step, std::exp(log_z + step * k3));
        return derivative_of_log(a + step, std::exp(log_z + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)));
      };
      double curvature = static_cast<double>((at(h) - at(-h)) / (2 * h));
      CHECK(curvatures[i] == Approx(curvature).epsilon(1e-4).margin(1e-6 * std::abs(slopes[i] / a)));
    }
    CHECK(outer.gradient(sum(x), rate).item() == Approx(-sum(x).item() / 2));
  }
}

TEST_CASE("gradients of many gamma samples are those of few at a time") {
  Generator generator(seed);
  Tensor alpha = full({10'000}, 1.5, {.dtype = DType::f64}).requires_grad();
  Tape tape;
  Tensor x = Gamma(alpha, 1).rsample({}, {.generator = &generator});
  Row drawn = x.to_vector<double>(), slopes = tape.gradient(sum(log(x)), alpha).to_vector<double>();
  for (std::size_t i = 0; i < drawn.size(); i += 500)
    CHECK(slopes[i] == Approx(static_cast<double>(derivative_of_log(1.5, drawn[i]))).epsilon(1e-8));
}

TEST_CASE("gradients of samples have the expectations of the gradients of moments") {
  Generator generator(seed);
  const std::int64_t n = 40'000;
  // The mean of the gradients is within 6 of its standard errors.
  auto check = [&](const Tensor& gradients, double expected) {
    INFO("seed " << seed);
    double error = std::sqrt(var(gradients).item() / n);
    CHECK(std::abs(mean(gradients).item() - expected) <= 6 * error);
  };
  const TensorOptions in_f64{.dtype = DType::f64};
  {
    Tensor a = full({n}, 0.7, in_f64).requires_grad(), b = full({n}, 2.0, in_f64).requires_grad();
    Tape tape;
    std::vector<Tensor> g = tape.gradient(sum(Beta(a, b).rsample({}, {.generator = &generator})), {a, b});
    check(g[0], 2.0 / (2.7 * 2.7));
    check(g[1], -0.7 / (2.7 * 2.7));
  }
  {
    Tensor a = full({n, 3}, 1.5, in_f64).requires_grad();
    Tape tape;
    Tensor x = Dirichlet(a).rsample({}, {.generator = &generator});
    Tensor g = tape.gradient(sum(select(x, -1, 0)), a);
    check(select(g, -1, 0), 3 / (4.5 * 4.5));
    check(select(g, -1, 2), -1.5 / (4.5 * 4.5));
  }
}

TEST_CASE("logarithms of probabilities of samples, and their gradients, are finite in every dtype") {
  // The logarithm at a sample of the distribution that `make` gives of parameters; the sample is watched if a density
  // has a derivative there.
  using Draw =
      std::function<Tensor(Tape&, const std::vector<Tensor>& parameters, DrawOptions, std::vector<Tensor>& sources)>;
  auto draw_of = [](auto make, bool is_continuous = true) -> Draw {
    return [=](Tape& tape, const std::vector<Tensor>& p, DrawOptions options, std::vector<Tensor>& sources) {
      auto d = make(p);
      Tensor x = copy(d.sample({}, options));
      if (is_continuous) tape.watch(x);
      if (is_continuous) sources.push_back(x);
      return d.log_prob(x);
    };
  };
  using In = const std::vector<Tensor>&;
  auto together = [](In in) { return stack(in, -1); };
  struct Case {
    std::string name;
    std::vector<Row> parameters;
    Draw draw;
    bool has_halves = true;
  };
  std::vector<Case> cases{
      {"normal", {{2, 3}, {-1000, 8}}, draw_of([](In in) { return Normal(in[0], in[1]); })},
      {"uniform", {{1, 2}, {-1, 0}, {-40000, 40000}, {1000, 1008}}, draw_of([](In in) {
         return Uniform(in[0], in[1]);
       })},
      {"gumbel", {{1, 2}, {0, 1000}}, draw_of([](In in) { return Gumbel(in[0], in[1]); })},
      {"gamma", {{1e-4, 1}, {0.3, 5}, {8000, 0.5}, {8000, 0.12}, {30000, 3}}, draw_of([](In in) {
         return Gamma(in[0], in[1]);
       })},
      {"beta", {{3, 0.2}, {0.1, 0.1}, {50, 0.5}, {1e-3, 2e-3}, {8000, 9000}}, draw_of([](In in) {
         return Beta(in[0], in[1]);
       })},
      {"dirichlet", {{0.01, 0.01, 0.01}, {3, 0.2, 0.1}, {8000, 9000, 1}, Row(500, 0.01)}, draw_of([&](In in) {
         return Dirichlet(together(in));
       })},
      {"poisson", {{0}, {0.1}, {9}, {300}, {8000}, {65000}}, draw_of([](In in) { return Poisson(in[0]); }, false)},
      {"bernoulli of probabilities",
       {{0}, {1}, {1e-3}, {0.5}},
       draw_of([](In in) { return Bernoulli({.probabilities = in[0]}); }, false)},
      {"bernoulli of logits",
       {{infinity}, {-infinity}, {-30}, {3}},
       draw_of([](In in) { return Bernoulli({.logits = in[0]}); }, false)},
      {"categorical",
       {{0, 0}, {-infinity, 0}, {1e4, -1e4}, Row(100, 1)},
       draw_of([&](In in) { return Categorical(together(in)); }, false)},
      {"multivariate normal",
       {{1, 2}, {1e4, 1e-2}},
       draw_of(
           [&](In in) { return MultivariateNormal(together(in), {.scale_tril = eye(2, {.dtype = in[0].dtype()})}); }),
       false},
  };
  Generator generator(seed);
  for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (const Case& c : cases)
      for (const Row& row : c.parameters) {
        if (!c.has_halves && size_of(dtype) == 2) continue;
        INFO(name_of(dtype) << " " << c.name << " of " << row[0] << ", " << row.back() << ", seed " << seed);
        std::vector<Tensor> parameters;
        for (double value : row)
          parameters.push_back(full({row.size() > 3 ? 20 : 3000}, value, {.dtype = dtype}).requires_grad());
        Tape tape;
        std::vector<Tensor> sources = parameters;
        Tensor logarithm = c.draw(tape, parameters, {.generator = &generator}, sources);
        CHECK(logarithm.dtype() == dtype);
        CHECK(all(isfinite(logarithm)).item<bool>());
        for (const Tensor& gradient : tape.gradient(sum(logarithm), sources, {.unconnected = Unconnected::zeros}))
          CHECK(all(isfinite(gradient)).item<bool>());
      }
}

TEST_CASE("samples of beta and Dirichlet distributions lie strictly within (0, 1), with the gradients of f64") {
  auto inside = [](const Tensor& x) { return all(logical_and(x > 0, x < 1)).item<bool>(); };
  for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (auto [a, b] : {std::pair{3., 0.25}, {0.125, 0.125}, {64., 0.5}, {0.5, 0.03125}}) {
      INFO(name_of(dtype) << ", α " << a << ", β " << b << ", seed " << seed);
      // α and β are numbers of all dtypes, so that all draw the samples of f64, but for rounding.
      auto gradients_in = [&](DType in, bool of_beta) {
        Generator generator(seed);
        Tensor alpha = full({4000}, a, {.dtype = in}).requires_grad(),
               beta = full({4000}, b, {.dtype = in}).requires_grad();
        Tape tape;
        Tensor x =
            of_beta ? Beta(alpha, beta).rsample({}, {.generator = &generator})
                    : select(Dirichlet(stack({alpha, beta, beta}, -1)).rsample({}, {.generator = &generator}), -1, 0);
        CHECK(x.dtype() == in);
        CHECK(inside(x));
        std::vector<Tensor> g = tape.gradient(sum(x), {alpha, beta});
        return std::array{to(stop_gradient(x), DType::f64), to(g[0], DType::f64), to(g[1], DType::f64)};
      };
      for (bool of_beta : {true, false}) {
        auto exact = gradients_in(DType::f64, of_beta), found = gradients_in(dtype, of_beta);
        double spacing = std::ldexp(1, dtype == DType::f64   ? -52
                                       : dtype == DType::f32 ? -23
                                       : dtype == DType::f16 ? -10
                                                             : -7);
        for (std::size_t i = 1; i < 3; ++i) {
          // Rounded once, and 0 where x is moved to an end, which it does if x (1 − x) is at most the spacing.
          Tensor bound = spacing * abs(exact[i]) * (1 + 1 / (exact[0] * (1 - exact[0])));
          CHECK(all(abs(found[i] - exact[i]) <= bound).item<bool>());
          CHECK(max(abs(found[i])).item() > 0);
        }
      }
    }
}

TEST_CASE("samples of uniform distributions lie below the upper bound in every dtype") {
  Generator generator(seed);
  for (DType dtype : {DType::bf16, DType::f16, DType::f32, DType::f64})
    for (auto [low, high] : {std::pair{1., 2.}, {-1., 0.}, {0., 1.}, {1000., 1008.}, {-40000., 40000.}}) {
      INFO(name_of(dtype) << ", from " << low << " to " << high << ", seed " << seed);
      Uniform d(full({}, low, {.dtype = dtype}), full({}, high, {.dtype = dtype}));
      Tensor x = d.sample({20'000}, {.generator = &generator});
      CHECK(x.dtype() == dtype);
      CHECK(all(logical_and(x >= low, x < high)).item<bool>());
      double share = mean(to(x < (low + high) / 2, DType::f64)).item();
      // Within 6 standard errors, and half of the spacing of bf16, by which a bound of the half is rounded.
      CHECK(std::abs(share - 0.5) <= 3 / std::sqrt(20'000.) + (high == 1008 ? 0.5 : 0.01));
    }
}

TEST_CASE("equal classes are drawn equally often in every dtype") {
  const std::int64_t classes = 64, n = 64'000;
  for (DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    Generator generator(seed);
    Tensor drawn =
        distributions::Categorical(zeros({classes}, {.dtype = dtype})).sample({n}, {.generator = &generator});
    Tensor counts = to(bincount(drawn, {.minimum_length = classes}), DType::f64);
    double expected = static_cast<double>(n / classes), chi_squared = sum(square(counts - expected)).item() / expected;
    INFO(name_of(dtype) << ", seed " << seed);
    // χ² of 63 degrees of freedom is above 63 + 6 √(2 · 63) once in 10⁶ times.
    CHECK(chi_squared < 63 + 6 * std::sqrt(126));
  }
}

TEST_CASE("samples of extreme concentrations and rates are in the support") {
  Generator generator(seed);
  DrawOptions draw{.generator = &generator};
  for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    auto in = [&](double value) { return full({200}, value, {.dtype = dtype}); };
    CAPTURE(name_of(dtype));
    for (double a : {1e-4, 0.01, 1.0, 1000.0}) {
      Tensor x = Gamma(in(a), in(1)).sample({}, draw), y = Beta(in(a), in(a)).sample({}, draw),
             z = Dirichlet(in(a)).sample({}, draw);
      CHECK(x.dtype() == dtype);
      CHECK(y.dtype() == dtype);
      CHECK(z.dtype() == dtype);
      CHECK(all(x > 0).item<bool>());
      CHECK(all(logical_and(y > 0, y < 1)).item<bool>());
      CHECK(all(logical_and(z > 0, z < 1)).item<bool>());
      CHECK(all(isfinite(Dirichlet(in(1)).log_prob(z))).item<bool>());
    }
    Tensor k = Poisson(in(0)).sample({}, draw);
    CHECK(k.dtype() == dtype);
    CHECK(all(equal(k, 0)).item<bool>());
  }
  Tensor many = Poisson(number(1e12)).sample({1000}, draw);
  CHECK(std::abs(mean(many).item() / 1e12 - 1) < 6e-6 / std::sqrt(1000.0));
}
