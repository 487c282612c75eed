#include <reel/reel.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "catch.h"
#include "checks.h"

using namespace reel;
using distributions::Bernoulli;
using distributions::Categorical;
using distributions::Normal;
using namespace reel_test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

const RandomOptions in_f64{.dtype = DType::f64};

// The mean of n independent draws is within 5 standard errors of its expectation, but for once in 1.7 million.
void check_mean(double mean, double expected, double variance, double n) {
  CHECK(std::abs(mean - expected) <= 5 * std::sqrt(variance / n));
}

}  // namespace

TEST_CASE("a normal distribution has the moments, densities and entropies of its formulas") {
  Normal p(tensor(Row{0, 1, -2}), tensor(Row{1, 2, 0.5}));
  check_close(p.mean(), {0, 1, -2});
  check_close(p.stddev(), {1, 2, 0.5});
  check_close(p.variance(), {1, 4, 0.25});
  auto density = [](double x, double mu, double sigma) {
    return std::log(std::exp(-(x - mu) * (x - mu) / (2 * sigma * sigma)) / (sigma * std::sqrt(2 * M_PI)));
  };
  check_close(p.log_prob(tensor(Row{0.5, -1, -2})), {density(0.5, 0, 1), density(-1, 1, 2), density(-2, -2, 0.5)});
  auto entropy = [](double sigma) { return 0.5 * std::log(2 * M_PI * M_E * sigma * sigma); };
  check_close(p.entropy(), {entropy(1), entropy(2), entropy(0.5)});
}

TEST_CASE("Bernoulli distributions of logits and of their probabilities are equal") {
  Row chances{0.25, 0.5, 0.9};
  Tensor p = tensor(chances);
  for (const Bernoulli& d : {Bernoulli({.probabilities = p}), Bernoulli({.logits = log(p) - log1p(-p)})}) {
    check_close(d.mean(), chances);
    check_close(d.variance(), {0.1875, 0.25, 0.09});
    check_close(d.log_prob(ones_like(p)), {std::log(0.25), std::log(0.5), std::log(0.9)});
    check_close(d.log_prob(zeros_like(p)), {std::log(0.75), std::log(0.5), std::log(0.1)});
    auto entropy = [](double p) { return -p * std::log(p) - (1 - p) * std::log(1 - p); };
    check_close(d.entropy(), {entropy(0.25), entropy(0.5), entropy(0.9)});
  }
}

TEST_CASE("a categorical distribution has the probabilities of softmax") {
  Categorical d(tensor(Row{std::log(1), std::log(2), std::log(5)}));
  check_close(d.probabilities(), {0.125, 0.25, 0.625});
  check_close(d.log_prob(tensor(std::vector<std::int64_t>{2, 0})), {std::log(0.625), std::log(0.125)});
  check_close(d.entropy(), {-0.125 * std::log(0.125) - 0.25 * std::log(0.25) - 0.625 * std::log(0.625)});
}

TEST_CASE("divergences are those of their closed forms, and 0 of a distribution from itself") {
  Normal p(tensor(Row{1}), tensor(Row{0.5})), q(tensor(Row{-1}), tensor(Row{2}));
  check_close(kl_divergence(p, q), {std::log(4) + (0.25 + 4) / 8 - 0.5});
  check_close(kl_divergence(p, p), {0});
  check_close(kl_divergence(p, Normal(0, 1)), {std::log(2) + (0.25 + 1) / 2 - 0.5});
  Bernoulli a({.probabilities = tensor(Row{0.2})}), b({.probabilities = tensor(Row{0.7})});
  check_close(kl_divergence(a, b), {0.2 * std::log(0.2 / 0.7) + 0.8 * std::log(0.8 / 0.3)});
  check_close(kl_divergence(a, a), {0});
  Categorical c(tensor(Row{0, 0})), d(log(tensor(Row{0.1, 0.9})));
  check_close(kl_divergence(c, d), {0.5 * std::log(0.5 / 0.1) + 0.5 * std::log(0.5 / 0.9)});
  check_close(kl_divergence(c, c), {0});
}

TEST_CASE("distributions of extreme logits are finite where their limits are") {
  Bernoulli d({.logits = tensor(Row{1e4, -1e4})}), opposite({.logits = tensor(Row{-1e4, 1e4})});
  check_close(d.log_prob(tensor(Row{1, 0})), {0, 0});
  check_close(d.log_prob(tensor(Row{0, 1})), {-1e4, -1e4});
  check_close(d.entropy(), {0, 0});
  check_close(kl_divergence(d, opposite), {1e4, 1e4});
  check_close(d.sample(), {1, 0});

  Categorical c(tensor(Row{1e4, -1e4, -infinity})), uniform(tensor(Row{0, 0, 0}));
  check_close(c.log_prob(tensor(std::vector<std::int64_t>{0, 1, 2})), {0, -2e4, -infinity});
  check_close(c.entropy(), {0});
  check_close(kl_divergence(c, uniform), {std::log(3)});
  check_close(kl_divergence(c, c), {0});
  check_close(kl_divergence(uniform, c), {infinity});
  CHECK(c.sample({100}).to_vector<std::int64_t>() == std::vector<std::int64_t>(100, 0));
}

TEST_CASE("Bernoulli distributions of certain events have the limits of logarithms of probabilities and divergences") {
  Bernoulli certain({.logits = tensor(Row{infinity, -infinity})});
  check_close(certain.log_prob(1), {0, -infinity});
  check_close(certain.log_prob(0), {-infinity, 0});
  check_close(certain.entropy(), {0, 0});
  check_close(certain.sample(), {1, 0});
  for (DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    CAPTURE(name_of(dtype));
    Tensor p = to(tensor(Row{0.5, 0.5, 0, 1, 1, 0, 0.5}), dtype), q = to(tensor(Row{0, 1, 1, 0, 1, 0, 0.5}), dtype);
    Tensor apart = kl_divergence(Bernoulli({.probabilities = p}), Bernoulli({.probabilities = q}));
    check_close(to(apart, DType::f64), {infinity, infinity, infinity, infinity, 0, 0, 0});
  }
  Bernoulli half({.logits = tensor(Row{0, 0})});
  check_close(kl_divergence(half, certain), {infinity, infinity});
  check_close(kl_divergence(certain, half), {std::log(2), std::log(2)});
  check_close(kl_divergence(certain, certain), {0, 0});
  // A logit whose probability is rounded to 0 excludes nothing: ½ log(½ / e^−1000) + ½ log(½ / 1).
  Bernoulli rare({.logits = tensor(Row{-1000, 1000})});
  check_close(kl_divergence(half, rare), {500 - std::log(2), 500 - std::log(2)});
  CHECK_THROWS_AS(Categorical(zeros({3})).log_prob(tensor(-1)), IndexError);
}

TEST_CASE("gradients of a Bernoulli distribution are finite at probabilities of 0 and 1 and at infinite logits") {
  Tensor p = tensor(Row{0, 1, 0.5}).requires_grad(), logits = tensor(Row{-infinity, infinity, 0}).requires_grad(),
         x = tensor(Row{0, 1, 1});
  Tape tape;
  Bernoulli a({.probabilities = p}), b({.logits = logits});
  Tensor total;
  for (const Bernoulli& d : {a, b}) {
    Tensor part =
        sum(d.log_prob(x) + d.entropy() + kl_divergence(d, d) + kl_divergence(d, Bernoulli({.logits = zeros_like(x)})));
    total = total.defined() ? total + part : part;
  }
  for (const Tensor& gradient : tape.gradient(total, {p, logits})) CHECK(all(isfinite(gradient)).item<bool>());
}

TEST_CASE("gradients of entropies and divergences are finite at extreme logits") {
  Tensor logits = tensor(Row{1e4, -1e4, 0}).requires_grad(), other = tensor(Row{0, 1, 2});
  Tape tape;
  Tensor total = sum(Bernoulli({.logits = logits}).entropy()) + Categorical(logits).entropy() +
                 sum(kl_divergence(Bernoulli({.logits = logits}), Bernoulli({.logits = other}))) +
                 kl_divergence(Categorical(logits), Categorical(other));
  tape.backward(total);
  for (double value : logits.grad().to_vector<double>()) CHECK(std::isfinite(value));
}

TEST_CASE("parameters and values broadcast, and a sample shape comes before the batch shape") {
  Normal p(zeros({3, 1}), ones({2}));
  CHECK(p.batch_shape() == Shape{3, 2});
  CHECK(p.sample({5}).shape() == Shape{5, 3, 2});
  CHECK(p.rsample().shape() == Shape{3, 2});
  CHECK(p.log_prob(zeros({4, 1, 1})).shape() == Shape{4, 3, 2});
  CHECK(kl_divergence(p, Normal(0, 1)).shape() == Shape{3, 2});
  CHECK(Normal(0, 1).sample().shape() == Shape{});
  CHECK(Normal(zeros({2}, {.dtype = DType::f64}), 1).sample().dtype() == DType::f64);
  Bernoulli b({.logits = zeros({3})});
  CHECK(b.sample({2, 4}).shape() == Shape{2, 4, 3});
  CHECK(b.log_prob(zeros({5, 1})).shape() == Shape{5, 3});
  Categorical c(zeros({3, 7}));
  CHECK(c.batch_shape() == Shape{3});
  CHECK(c.sample({2}).shape() == Shape{2, 3});
  CHECK(c.log_prob(c.sample({2})).shape() == Shape{2, 3});
  CHECK(c.entropy().shape() == Shape{3});
  CHECK(kl_divergence(c, Categorical(zeros({7}))).shape() == Shape{3});
}

TEST_CASE("samples have the means and variances of their distributions") {
  manual_seed(1);
  const std::int64_t n = 100'000;
  auto drawn = static_cast<double>(n);
  Tensor x = Normal(tensor(Row{2}), tensor(Row{3})).sample({n});
  check_mean(mean(x).item(), 2, 9, drawn);
  check_mean(mean(square(x - 2)).item(), 9, 2 * 81, drawn);  // the variance of (x − μ)² is 2 σ⁴
  check_mean(mean(Bernoulli({.probabilities = tensor(Row{0.3})}).sample({n})).item(), 0.3, 0.21, drawn);
  Categorical c(log(tensor(Row{0.1, 0.2, 0.7})));
  Tensor classes = c.sample({n});
  Row chances = c.probabilities().to_vector<double>();
  for (int k = 0; k < 3; ++k) {
    double p = chances[static_cast<std::size_t>(k)];
    check_mean(mean(to(classes == k, DType::f64)).item(), p, p * (1 - p), drawn);
  }
}

TEST_CASE("samples are those of the generator that is given") {
  auto both = [](const std::function<Tensor(DrawOptions)>& draw) {
    Generator first(7), second(7);
    CHECK(draw({.generator = &first}).to_vector<double>() == draw({.generator = &second}).to_vector<double>());
  };
  Normal p(tensor(Row{0}), tensor(Row{1}));
  Bernoulli b({.logits = tensor(Row{0})});
  Categorical c(tensor(Row{0, 0}));
  both([&](DrawOptions options) { return p.sample({50}, options); });
  both([&](DrawOptions options) { return b.sample({50}, options); });
  both([&](DrawOptions options) { return to(c.sample({50}, options), DType::f64); });
}

TEST_CASE("only rsample has gradients") {
  Tensor mu = tensor(Row{1}).requires_grad(), sigma = tensor(Row{2}).requires_grad();
  Tape tape;
  Tensor z = Normal(mu, sigma).rsample();
  tape.backward(sum(z));
  CHECK(mu.grad().item() == 1);
  CHECK(sigma.grad().item() == Approx((z.item() - 1) / 2));
  CHECK_THROWS_AS(tape.backward(sum(Normal(mu, sigma).sample())), TapeError);
}

TEST_CASE("gradients of first and second order agree with differences") {
  manual_seed(2);
  Tensor a = randn({3, 4}, in_f64), b = randn({3, 4}, in_f64), s = 0.5 + rand({3, 4}, in_f64),
         t = 0.5 + rand({3, 4}, in_f64), p = 0.1 + 0.8 * rand({3, 4}, in_f64), x = rand({3, 4}, in_f64);
  Tensor classes = randint(0, 4, {3}), zero = zeros({3, 4}, {.dtype = DType::f64});
  using In = std::span<const Tensor>;
  check_derivatives({
      {"normal log_prob", [](In in) { return Normal(in[0], in[1]).log_prob(in[2]); }, {a, s, b}},
      {"normal entropy", [](In in) { return Normal(in[0], in[1]).entropy(); }, {a, s}},
      {"normal kl", [](In in) { return kl_divergence(Normal(in[0], in[1]), Normal(in[2], in[3])); }, {a, s, b, t}},
      {"normal rsample",
       [](In in) {
         Generator generator(3);
         return Normal(in[0], in[1]).rsample({2}, {.generator = &generator});
       },
       {a, s}},
      {"bernoulli log_prob", [](In in) { return Bernoulli({.logits = in[0]}).log_prob(in[1]); }, {a, x}},
      {"bernoulli log_prob of p", [](In in) { return Bernoulli({.probabilities = in[0]}).log_prob(in[1]); }, {p, x}},
      {"bernoulli entropy", [](In in) { return Bernoulli({.logits = in[0]}).entropy(); }, {a}},
      {"bernoulli log_prob at 0", [](In in) { return Bernoulli({.logits = in[0]}).log_prob(in[1]); }, {zero, x}},
      {"bernoulli entropy at 0", [](In in) { return Bernoulli({.logits = in[0]}).entropy(); }, {zero}},
      {"bernoulli kl",
       [](In in) { return kl_divergence(Bernoulli({.logits = in[0]}), Bernoulli({.logits = in[1]})); },
       {a, b}},
      {"categorical log_prob", [&](In in) { return Categorical(in[0]).log_prob(classes); }, {a}},
      {"categorical entropy", [](In in) { return Categorical(in[0]).entropy(); }, {a}},
      {"categorical kl", [](In in) { return kl_divergence(Categorical(in[0]), Categorical(in[1])); }, {a, b}},
  });
}

TEST_CASE("what is no distribution is refused, with the line of the caller") {
  struct Case {
    std::string sentence;
    std::function<void()> f;
  };
  Tensor integers = zeros({2}, {.dtype = DType::i64});
  std::vector<Case> cases{
      {"standard deviation must be above 0", [] { Normal(0, 0); }},
      {"do not broadcast", [] { Normal(zeros({2}), ones({3})); }},
      {"must have one dtype", [] { Normal(zeros({2}), ones({2}, {.dtype = DType::f64})); }},
      {"floating", [&] { Normal(integers, 1); }},
      {"undefined", [] { Normal(Tensor(), 1); }},
      {"not neither", [] { Bernoulli(distributions::BernoulliParameters{}); }},
      {"not both", [] { Bernoulli({.logits = zeros({2}), .probabilities = zeros({2})}); }},
      {"floating", [&] { Bernoulli({.logits = integers}); }},
      {"Bernoulli: a value is not a probability", [] { Bernoulli({.probabilities = full({2}, 1.5)}); }},
      {"Bernoulli: a value is not a probability", [] { Bernoulli({.probabilities = full({2}, -0.5)}); }},
      {"Bernoulli: a value is not a probability", [] { Bernoulli({.probabilities = full({2}, std::nan(""))}); }},
      {"Bernoulli: a value is not in [0, 1]", [] { Bernoulli({.logits = zeros({2})}).log_prob(2); }},
      {"Bernoulli: a value is not in [0, 1]", [] { Bernoulli({.logits = zeros({2})}).log_prob(full({2}, -0.5)); }},
      {"Bernoulli: a value is not in [0, 1]",
       [] {
         Bernoulli({.logits = zeros({2})}).log_prob(tensor({0, 2}));
       }},
      {"no classes", [] { Categorical(zeros({})); }},
      {"no classes",
       [] {
         Categorical(zeros({2, 0}));
       }},
      {"floating", [&] { Categorical c(integers); }},
      {"Categorical: class 3 is not in [0, 3)",
       [] {
         Categorical(zeros({3})).log_prob(tensor({0, 3}));
       }},
      {"Categorical: class -1 is not in [0, 3)",
       [] {
         Categorical(zeros({3})).log_prob(tensor({-1, 2}));
       }},
      {"Categorical: classes are of i32 or i64, not () f32", [] { Categorical(zeros({3})).log_prob(ones({})); }},
      {"equally many", [] { kl_divergence(Categorical(zeros({3})), Categorical(zeros({4}))); }},
      {"do not broadcast", [] { kl_divergence(Normal(zeros({2}), 1), Normal(zeros({3}), 1)); }},
      {"do not broadcast", [] { kl_divergence(Bernoulli({.logits = zeros({2})}), Bernoulli({.logits = zeros({3})})); }},
  };
  for (const Case& c : cases) {
    std::string text = error_of<Error>(c.f);
    INFO(c.sentence);
    CHECK_THAT(text, contains(c.sentence));
    CHECK_THAT(text, contains("distributions_test.cpp:"));
  }
}
