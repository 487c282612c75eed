#include <reel/batching.h>
#include <reel/ops/stop_gradient.h>
#include <reel/reel.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "catch.h"
#include "checks.h"
#include "plain.h"

// Gradients by the parameters of the distributions, generators, and input that is refused.

using namespace reel;
using namespace reel::distributions;
using namespace reel_test;

TEST_CASE("gradients of first and second order of the further distributions agree with differences") {
  manual_seed(2);
  const RandomOptions in_f64{.dtype = DType::f64};
  Tensor a = 0.5 + 3 * rand({2, 3}, in_f64), b = 0.5 + 3 * rand({2, 3}, in_f64), c = 0.5 + 3 * rand({2, 3}, in_f64),
         d = 0.5 + 3 * rand({2, 3}, in_f64), x = 0.1 + 0.8 * rand({2, 3}, in_f64), loc = randn({2, 3}, in_f64),
         other = randn({2, 3}, in_f64), raw = randn({2, 3, 3}, in_f64), more = randn({2, 3, 3}, in_f64);
  // A lower triangular matrix with a positive diagonal, and a positive definite one.
  auto factor = [](const Tensor& matrix) {
    return tril(matrix, -1) + diag(ones({3}, {.dtype = DType::f64})) * exp(matrix);
  };
  auto definite = [](const Tensor& matrix) {
    return matmul(matrix, transpose(matrix)) + eye(3, {.dtype = DType::f64});
  };
  using In = std::span<const Tensor>;
  check_derivatives({
      {"uniform log_prob", [&](In in) { return Uniform(-in[0], in[1]).log_prob(x * 0.5); }, {a, b}},
      {"uniform entropy", [](In in) { return Uniform(-in[0], in[1]).entropy(); }, {a, b}},
      {"uniform kl",
       [](In in) { return kl_divergence(Uniform(-in[0], in[1]), Uniform(-in[0] - in[2], in[1] + in[3])); },
       {a, b, c, d}},
      {"uniform rsample",
       [](In in) {
         Generator generator(3);
         return Uniform(-in[0], in[1]).rsample({2}, {.generator = &generator});
       },
       {a, b}},
      {"gumbel log_prob", [](In in) { return Gumbel(in[0], in[1]).log_prob(in[2]); }, {loc, a, other}},
      {"gumbel entropy", [](In in) { return Gumbel(in[0], in[1]).entropy(); }, {loc, a}},
      {"gumbel kl",
       [](In in) { return kl_divergence(Gumbel(in[0], in[1]), Gumbel(in[2], in[3])); },
       {loc, a, other, b}},
      {"gumbel rsample",
       [](In in) {
         Generator generator(3);
         return Gumbel(in[0], in[1]).rsample({2}, {.generator = &generator});
       },
       {loc, a}},
      {"gamma log_prob", [](In in) { return Gamma(in[0], in[1]).log_prob(in[2]); }, {a, b, c}},
      {"gamma entropy", [](In in) { return Gamma(in[0], in[1]).entropy(); }, {a, b}},
      {"gamma kl", [](In in) { return kl_divergence(Gamma(in[0], in[1]), Gamma(in[2], in[3])); }, {a, b, c, d}},
      {"gamma rsample by the rate",
       [&](In in) {
         Generator generator(3);
         return Gamma(a, in[0]).rsample({2}, {.generator = &generator});
       },
       {b}},
      {"beta log_prob", [](In in) { return Beta(in[0], in[1]).log_prob(in[2]); }, {a, b, x}},
      {"beta entropy", [](In in) { return Beta(in[0], in[1]).entropy(); }, {a, b}},
      {"beta kl", [](In in) { return kl_divergence(Beta(in[0], in[1]), Beta(in[2], in[3])); }, {a, b, c, d}},
      {"dirichlet log_prob", [](In in) { return Dirichlet(in[0]).log_prob(softmax(in[1])); }, {a, loc}},
      {"dirichlet entropy", [](In in) { return Dirichlet(in[0]).entropy(); }, {a}},
      {"dirichlet kl", [](In in) { return kl_divergence(Dirichlet(in[0]), Dirichlet(in[1])); }, {a, b}},
      {"poisson log_prob", [&](In in) { return Poisson(in[0]).log_prob(floor(c * 3)); }, {a}},
      {"poisson entropy", [](In in) { return Poisson(in[0]).entropy(); }, {a}},
      {"poisson entropy of large rates", [](In in) { return Poisson(60 * in[0]).entropy(); }, {b}},
      {"poisson kl", [](In in) { return kl_divergence(Poisson(in[0]), Poisson(in[1])); }, {a, b}},
      {"multivariate normal log_prob",
       [&](In in) { return MultivariateNormal(in[0], {.scale_tril = factor(in[1])}).log_prob(in[2]); },
       {loc, raw, other}},
      {"multivariate normal log_prob of the covariance",
       [&](In in) { return MultivariateNormal(in[0], {.covariance_matrix = definite(in[1])}).log_prob(in[2]); },
       {loc, raw, other}},
      {"multivariate normal log_prob of the precision",
       [&](In in) { return MultivariateNormal(in[0], {.precision_matrix = definite(in[1])}).log_prob(in[2]); },
       {loc, raw, other}},
      {"multivariate normal entropy",
       [&](In in) { return MultivariateNormal(loc, {.scale_tril = factor(in[0])}).entropy(); },
       {raw}},
      {"multivariate normal kl",
       [&](In in) {
         return kl_divergence(MultivariateNormal(in[0], {.scale_tril = factor(in[1])}),
                              MultivariateNormal(in[2], {.scale_tril = factor(in[3])}));
       },
       {loc, raw, other, more}},
      {"multivariate normal rsample",
       [&](In in) {
         Generator generator(3);
         return MultivariateNormal(in[0], {.scale_tril = factor(in[1])}).rsample({2}, {.generator = &generator});
       },
       {loc, raw}},
      {"beta kl gamma", [](In in) { return kl_divergence(Beta(in[0], in[1]), Gamma(in[2], in[3])); }, {a, b, c, d}},
      {"beta kl normal", [](In in) { return kl_divergence(Beta(in[0], in[1]), Normal(in[2], in[3])); }, {a, b, loc, d}},
      {"beta kl uniform",
       [](In in) { return kl_divergence(Beta(in[0], in[1]), Uniform(-in[2], 1 + in[3])); },
       {a, b, c, d}},
      {"gamma kl gumbel",
       [](In in) { return kl_divergence(Gamma(in[0], in[1]), Gumbel(in[2], in[3])); },
       {a, b, loc, d}},
      {"gamma kl normal",
       [](In in) { return kl_divergence(Gamma(in[0], in[1]), Normal(in[2], in[3])); },
       {a, b, loc, d}},
      {"gumbel kl normal",
       [](In in) { return kl_divergence(Gumbel(in[0], in[1]), Normal(in[2], in[3])); },
       {loc, b, other, d}},
      {"normal kl gumbel",
       [](In in) { return kl_divergence(Normal(in[0], in[1]), Gumbel(in[2], in[3])); },
       {loc, b, other, d}},
      {"uniform kl gumbel",
       [](In in) { return kl_divergence(Uniform(-in[0], in[1]), Gumbel(in[2], in[3])); },
       {a, b, loc, d}},
      {"uniform kl normal",
       [](In in) { return kl_divergence(Uniform(-in[0], in[1]), Normal(in[2], in[3])); },
       {a, b, loc, d}},
      {"bernoulli kl poisson",
       [](In in) { return kl_divergence(Bernoulli({.logits = in[0]}), Poisson(in[1])); },
       {loc, a}},
  });
}

TEST_CASE("gradients at the ends of the support are those of what is finite there") {
  Tensor a = tensor(Row{1}).requires_grad(), b = tensor(Row{3}).requires_grad();
  Tape tape;
  std::vector<Tensor> g = tape.gradient(sum(Gamma(a, b).log_prob(tensor(Row{0}))), {a, b});
  // log f = α log β − log Γ(α) at x = 0 and α = 1, with 0 log 0 = 0
  CHECK(g[0].item() == Approx(std::log(3.0) - plain_digamma(1)));
  CHECK(g[1].item() == Approx(1.0 / 3));
}

TEST_CASE("samples of the further distributions are those of the generator that is given") {
  auto both = [](const std::function<Tensor(DrawOptions)>& draw) {
    Generator first(7), second(7);
    Row one = draw({.generator = &first}).to_vector<double>(), again = draw({.generator = &second}).to_vector<double>();
    CHECK(one == again);
    CHECK(one != draw({.generator = &second}).to_vector<double>());
  };
  Tensor one = tensor(Row{1}), three = tensor(Row{3}), two_rates = tensor(Row{3, 30});
  both([&](DrawOptions options) { return Uniform(one, three).sample({50}, options); });
  both([&](DrawOptions options) { return Gumbel(one, three).sample({50}, options); });
  both([&](DrawOptions options) { return Gamma(one, three).sample({50}, options); });
  both([&](DrawOptions options) { return Beta(one, three).sample({50}, options); });
  both([&](DrawOptions options) { return Dirichlet(tensor(Row{1, 2})).sample({50}, options); });
  both([&](DrawOptions options) { return Poisson(two_rates).sample({50}, options); });
  both([&](DrawOptions options) {
    return MultivariateNormal(tensor(Row{1, 2}), {.scale_tril = eye(2, {.dtype = DType::f64})}).sample({50}, options);
  });
}

TEST_CASE("only rsample of the further distributions has gradients") {
  Tensor a = tensor(Row{2}).requires_grad();
  Tape tape;
  tape.backward(sum(Gamma(a, 1).rsample()));
  CHECK(a.grad().item() > 0);
  for (const Tensor& drawn : {Gamma(a, 1).sample(), Beta(a, 1).sample(), Dirichlet(a).sample(), Poisson(a).sample(),
                              Gumbel(0, a).sample(), Uniform(0, a).sample()})
    CHECK_THROWS_AS(tape.backward(sum(drawn)), TapeError);
}

TEST_CASE("within batch_map the distributions give each example its own result and gradient") {
  Row concentrations{0.3, 1, 2.5, 40};
  Tensor alpha = tensor(concentrations).requires_grad();
  std::vector<Tensor> examples, results;
  Tape tape;
  for (int i = 0; i < 4; ++i) examples.push_back(select(alpha, 0, i));
  results = batch_map(examples, [](const Tensor& a) {
    Gamma p(a, 2);
    Tensor x = p.rsample(), k = Poisson(a).sample();
    // The terms that depend on x cancel: α log β − log Γ(α).
    return p.log_prob(stop_gradient(x)) - (p.concentration() - 1) * log(stop_gradient(x)) + 2 * stop_gradient(x) +
           0 * (x + k);
  });
  tape.backward(sum(stack(results)));
  Row gradients = alpha.grad().to_vector<double>();
  for (std::size_t i = 0; i < 4; ++i) {
    double a = concentrations[i];
    CHECK(results[i].item<double>() == Approx(a * std::log(2) - std::lgamma(a)));
    CHECK(gradients[i] == Approx(std::log(2) - plain_digamma(a)));
  }
}

TEST_CASE("parameters and values that a distribution does not have are refused, with the line of the caller") {
  struct Case {
    std::string sentence;
    std::function<void()> f;
  };
  Tensor integers = zeros({2}, {.dtype = DType::i64}), two = zeros({2}), nan = full({2}, std::nan(""));
  std::vector<Case> cases{
      {"Uniform: low must be less than high", [] { Uniform(1, 1); }},
      {"Uniform: low must be less than high", [&] { Uniform(nan, 1); }},
      {"Uniform: the shapes", [] { Uniform(zeros({2}), ones({3})); }},
      {"Uniform: low (2,) f32 and high (2,) f64 must have one dtype",
       [&] { Uniform(two, ones({2}, {.dtype = DType::f64})); }},
      {"Uniform: a value is not in [low, high]", [&] { Uniform(0, 1).log_prob(full({2}, 1.5)); }},
      {"Gumbel: the scale must be above 0, not -1", [] { Gumbel(0, -1); }},
      {"Gumbel: the scale must be above 0, not nan", [&] { Gumbel(0, nan); }},
      {"floating", [&] { Gumbel(integers, 1); }},
      {"undefined", [] { Gumbel(Tensor(), 1); }},
      {"Gamma: the concentration must be above 0, not 0", [&] { Gamma(two, 1); }},
      {"Gamma: the rate must be above 0, not -2", [] { Gamma(1, -2); }},
      {"Gamma: a value is not at least 0", [&] { Gamma(1, 1).log_prob(two - 1); }},
      {"Gamma: a value is not at least 0", [&] { Gamma(1, 1).log_prob(nan); }},
      {"Beta: the concentration0 must be above 0, not 0", [&] { Beta(1, 0); }},
      {"Beta: a value is not in [0, 1]", [&] { Beta(1, 1).log_prob(two + 2); }},
      {"Dirichlet: concentrations () f32 have no classes", [] { Dirichlet(ones({})); }},
      {"Dirichlet: concentrations (2, 0) f32 have no classes",
       [] {
         Dirichlet(ones({2, 0}));
       }},
      {"Dirichlet: the concentration must be above 0", [&] { Dirichlet p(two); }},
      {"Dirichlet: values (3,) f32 are not probabilities of 2 classes",
       [] { Dirichlet(ones({2})).log_prob(full({3}, 0.25)); }},
      {"Dirichlet: a value is not a vector of probabilities with the sum 1",
       [] { Dirichlet(ones({2})).log_prob(full({2}, 0.25)); }},
      {"Dirichlet: a value is not at least 0",
       [] {
         Dirichlet(ones({2})).log_prob(tensor({-0.5f, 1.5f}));
       }},
      {"kl_divergence: 2 classes and 3 are not equally many",
       [] { kl_divergence(Dirichlet(ones({2})), Dirichlet(ones({3}))); }},
      {"Poisson: the rate must be at least 0, not -1", [&] { Poisson p(two - 1); }},
      {"Poisson: a value is not a whole number from 0 on", [&] { Poisson(1).log_prob(two + 0.5); }},
      {"Poisson: a value is not a whole number from 0 on", [&] { Poisson(1).log_prob(two - 1); }},
      {"must be given, not 0", [&] { MultivariateNormal(two, {}); }},
      {"must be given, not 2", [&] { MultivariateNormal(two, {.covariance_matrix = eye(2), .scale_tril = eye(2)}); }},
      {"the matrix (3, 3) f32 does not fit loc (2,) f32", [&] { MultivariateNormal(two, {.scale_tril = eye(3)}); }},
      {"must both be f32 or both f64", [&] { MultivariateNormal(two, {.scale_tril = eye(2, {.dtype = DType::f64})}); }},
      {"the diagonal of scale_tril must be above 0", [&] { MultivariateNormal(two, {.scale_tril = -eye(2)}); }},
      {"scale_tril must be lower triangular",
       [&] {
         MultivariateNormal(two, {.scale_tril = ones({2, 2})});
       }},
      {"MultivariateNormal: the matrix is not positive definite",
       [&] { MultivariateNormal(two, {.covariance_matrix = -eye(2)}); }},
      {"values (3,) f32 are not vectors of 2 elements",
       [&] { MultivariateNormal(two, {.scale_tril = eye(2)}).log_prob(zeros({3})); }},
      {"do not broadcast",
       [] {
         MultivariateNormal(zeros({2, 2}), {.scale_tril = expand(eye(2), {3, 2, 2})});
       }},
      {"kl_divergence: vectors of 2 elements and of 3",
       [&] {
         kl_divergence(MultivariateNormal(two, {.scale_tril = eye(2)}),
                       MultivariateNormal(zeros({3}), {.scale_tril = eye(3)}));
       }},
      {"kl_divergence: shapes do not broadcast", [&] { kl_divergence(Gamma(ones({2}), 1), Gamma(ones({3}), 1)); }},
      {"kl_divergence: shapes do not broadcast", [&] { kl_divergence(Gamma(ones({2}), 1), Normal(ones({3}), 1)); }},
      {"Gamma: the sample shape (-1,) has a negative size", [] { Gamma(1, 1).sample({-1}); }},
  };
  for (const Case& c : cases) {
    std::string text = error_of<Error>(c.f);
    INFO(c.sentence);
    CHECK_THAT(text, contains(c.sentence));
    CHECK_THAT(text, contains("parameters_test.cpp:"));
  }
}
