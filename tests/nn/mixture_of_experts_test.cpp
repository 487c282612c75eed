#include <reel/debug/gradcheck.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/random.h>
#include <reel/tape.h>

#include <cmath>
#include <limits>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<double> doubles(const Tensor& x) { return to(x, f64).to_vector<double>(); }

double squared_variation(const std::vector<double>& x) {
  double mean = 0, variance = 0;
  for (double one : x) mean += one / static_cast<double>(x.size());
  for (double one : x) variance += (one - mean) * (one - mean) / static_cast<double>(x.size());
  return variance / (mean * mean + 1e-10);
}

}  // namespace

TEST_CASE("keep_topk keeps the k largest of each row, of equals the first, and exactly k") {
  Tensor x = tensor({{1.0, 3.0, 2.0, 3.0}, {5.0, 5.0, 5.0, 5.0}, {-1.0, -2.0, -3.0, -4.0}});
  CHECK(doubles(nn::keep_topk(x, 2)) ==
        std::vector<double>{-infinity, 3, -infinity, 3, 5, 5, -infinity, -infinity, -1, -2, -infinity, -infinity});
  CHECK(doubles(nn::keep_topk(x, 4)) == doubles(x));
}

TEST_CASE("the gradient of keep_topk is that of what stays") {
  Tensor x = tensor({1.0, 3.0, 2.0});
  Tape tape;
  tape.watch(x);
  Tensor y = softmax(nn::keep_topk(x, 2), -1);
  std::vector<double> gradient = doubles(tape.gradient(select(y, 0, 1), x));
  double share = 1 / (1 + std::exp(-1.0));
  CHECK(gradient[0] == 0);
  CHECK(gradient[1] == Approx(share * (1 - share)));
  CHECK(gradient[2] == Approx(-share * (1 - share)));
}

TEST_CASE("a gate without noise shares each row among its k best, and weighs what is out of balance") {
  manual_seed(1);
  nn::NoisyTopKGate gate(4, 5, {.k = 2, .noisy = false, .load_weight = 0.3, .initialiser = nn::normal()});
  Tensor x = randn({7, 4});
  nn::Gates gates = gate(x);
  std::vector<double> logits = doubles(matmul(x, gate.weight)), weights = doubles(gates.weights);
  std::vector<double> importance(5), load(5);
  for (std::size_t n = 0; n < 7; ++n) {
    double sum = 0;
    std::vector<std::size_t> chosen;
    for (std::size_t e = 0; e < 5; ++e) {
      std::size_t better = 0;
      for (std::size_t other = 0; other < 5; ++other) better += logits[n * 5 + other] > logits[n * 5 + e];
      if (better < 2) chosen.push_back(e);
    }
    REQUIRE(chosen.size() == 2);
    for (std::size_t e : chosen) sum += std::exp(logits[n * 5 + e]);
    for (std::size_t e = 0; e < 5; ++e) {
      bool is_chosen = e == chosen[0] || e == chosen[1];
      double expected = is_chosen ? std::exp(logits[n * 5 + e]) / sum : 0;
      CHECK(weights[n * 5 + e] == Approx(expected).epsilon(1e-5));
      importance[e] += expected;
      load[e] += is_chosen;
    }
  }
  CHECK(gates.balance_loss.item() ==
        Approx(0.1 * squared_variation(importance) + 0.3 * squared_variation(load)).epsilon(1e-4));
  CHECK(gate.parameters().size() == 1);
}

TEST_CASE("a gate's noise is drawn while training only, and the chances of experts are those of their own noise") {
  constexpr std::size_t experts = 4;
  nn::NoisyTopKGate gate(3, experts,
                         {.k = 2, .importance_weight = 0, .load_weight = 1, .initialiser = nn::normal(), .dtype = f64});
  manual_seed(2);
  Tensor x = randn({6, 3}, {.dtype = f64});
  Generator& generator = default_generator();
  std::uint64_t call = generator.calls();
  nn::Gates gates = gate(x);
  generator.set_calls(call);
  std::vector<double> clean = doubles(matmul(x, gate.weight)), noise = doubles(randn({6, experts}, {.dtype = f64})),
                      deviation = doubles(softplus(matmul(x, gate.noise_weight)) + 1e-2), load(experts);
  for (std::size_t n = 0; n < 6; ++n)
    for (std::size_t e = 0; e < experts; ++e) {
      std::vector<double> others;
      for (std::size_t i = n * experts; i < (n + 1) * experts; ++i)
        if (i != n * experts + e) others.push_back(clean[i] + noise[i] * deviation[i]);
      std::sort(others.rbegin(), others.rend());
      std::size_t i = n * experts + e;
      load[e] += std::erfc(-(clean[i] - others[1]) / deviation[i] / std::sqrt(2.0)) / 2;
    }
  CHECK(gates.balance_loss.item() == Approx(squared_variation(load)).epsilon(1e-10));
  gate.eval();
  CHECK(doubles(gate(x).weights) == doubles(softmax(nn::keep_topk(matmul(x, gate.weight), 2), -1)));
}

TEST_CASE("gradients of a gate's weights and loss are right") {
  nn::NoisyTopKGate gate(3, 4, {.k = 2, .initialiser = nn::normal(), .dtype = f64});
  manual_seed(5);
  Tensor x = randn({5, 3}, {.dtype = f64}), seed = randn({5, 4}, {.dtype = f64});
  std::uint64_t call = default_generator().calls();
  auto f = [&](std::span<const Tensor> x) {
    default_generator().set_calls(call);
    nn::Gates gates = gate(x[0]);
    return sum(gates.weights * seed) + gates.balance_loss;
  };
  debug::GradcheckReport report = debug::gradcheck(f, std::span(&x, 1));
  INFO(report.text);
  CHECK(report.agrees);
}

TEST_CASE("a mixture is the weighted sum of its experts, each called with its examples only") {
  manual_seed(3);
  nn::MixtureOfExperts<nn::Linear> mixture(4, 6, {.k = 2, .noisy = false, .initialiser = nn::normal()}, 4, 3);
  Tensor x = randn({2, 5, 4});
  nn::MixtureOutput found = mixture(x);
  Tensor rows = reshape(x, {10, 4}), weights = mixture.gate(rows).weights, expected = zeros({10, 3});
  for (std::int64_t e = 0; e < 6; ++e)
    expected = expected + mixture.experts[static_cast<std::size_t>(e)](rows) * slice(weights, 1, e, e + 1);
  CHECK(found.output.shape() == Shape{2, 5, 3});
  CHECK(max(abs(found.output - reshape(expected, {2, 5, 3}))).item() < 1e-5);
  std::int64_t called = 0;
  nn::mix_experts(rows, weights, [&](std::size_t, const Tensor& x) {
    called += x.size(0);
    return x;
  });
  CHECK(called == 20);
  CHECK(mixture.named_parameters()[1].name == "experts.0.weight");
}

TEST_CASE("gradients flow through a mixture to experts, gate and input, and an expert without examples has none") {
  manual_seed(4);
  nn::MixtureOfExperts<nn::Linear> mixture(3, 2, {.k = 1, .noisy = false}, 3, 2);
  // All examples go to the second.
  mixture.gate.weight.write<float>()[1] = 100;
  Tensor x = abs(randn({4, 3})) + 0.1;
  Tape tape;
  nn::MixtureOutput y = mixture(x);
  tape.backward(sum(y.output) + y.balance_loss);
  CHECK_FALSE(mixture.experts[0].weight.grad().defined());
  CHECK(mixture.experts[1].bias.grad().to_vector<float>() == std::vector<float>{4, 4});
  CHECK(mixture.gate.weight.grad().defined());
}

TEST_CASE("a mixture of no examples has the right shape") {
  nn::MixtureOfExperts<nn::Linear> mixture(3, 2, {.k = 1}, 3, 5);
  nn::MixtureOutput y = mixture(zeros({0, 3}));
  CHECK(y.output.shape() == Shape{0, 5});
  CHECK(std::isfinite(y.balance_loss.item()));
}

TEST_CASE("the balance loss spreads examples over the experts") {
  manual_seed(6);
  nn::NoisyTopKGate gate(2, 4, {.k = 1, .initialiser = nn::normal()});
  optim::Adam adam(gate.parameters(), {.learning_rate = 0.05});
  Tensor x = randn({64, 2}) + 3.0;  // all alike, so that one expert gets most
  auto loss = [&] { return gate(x).balance_loss; };
  double before = loss().item();
  for (int step = 0; step < 200; ++step)
    adam.step([&] {
      Tape tape;
      Tensor y = loss();
      tape.backward(y);
      return y.item();
    });
  CHECK(loss().item() < before / 2);
}

TEST_CASE("gates and mixtures refuse what does not fit in one sentence") {
  auto text = [](auto f) { return error_of<Error>(f); };
  CHECK_THAT(text([] { nn::keep_topk(zeros({2, 3}), 4); }), contains("keep_topk: there are not 4 of (2, 3) f32"));
  CHECK_THAT(text([] { nn::keep_topk(zeros({2}, {.dtype = i64}), 1); }), contains("keep_topk"));
  CHECK_THAT(text([] { nn::NoisyTopKGate gate(0, 2); }), contains("NoisyTopKGate: sizes must be positive, not in 0"));
  CHECK_THAT(text([] { nn::NoisyTopKGate gate(3, 2, {.k = 3}); }), contains("3 experts cannot be chosen out of 2"));
  CHECK_THAT(text([] { nn::NoisyTopKGate gate(3, 2, {.load_weight = -1}); }), contains("not both 0 or more"));
  nn::NoisyTopKGate gate(3, 2);
  CHECK_THAT(text([&] { gate(zeros({2, 4})); }), contains("x (2, 4) is not (N, 3)"));
  CHECK_THAT(text([&] { nn::mix_experts(zeros({2, 4}), zeros({3, 2}), {}); }), contains("mix_experts: weights (3, 2)"));
  CHECK_THAT(text([&] {
               nn::mix_experts(zeros({2, 4}), ones({2, 1}), [](std::size_t, const Tensor&) { return zeros({1}); });
             }),
             contains("expert 0 gave (1,) f32 for 2 examples"));
  nn::MixtureOfExperts<nn::Linear> mixture(3, 2, {}, 3, 5);
  CHECK_THAT(text([&] { mixture(zeros({2, 4})); }), contains("MixtureOfExperts: x (2, 4) does not end in an axis"));
}

TEST_CASE("the balance of one example among very many experts is that of the equation") {
  const std::int64_t experts = 8192;
  nn::NoisyTopKGate gate(1, experts, {.k = 1, .noisy = false, .importance_weight = 1, .load_weight = 0});
  double mean = 1.0 / static_cast<double>(experts), variance = mean - mean * mean;
  CHECK(gate(ones({1, 1})).balance_loss.item() == Approx(variance / (mean * mean + 1e-10)).epsilon(1e-4));
  CHECK(gate(ones({0, 1})).balance_loss.item() == 0);
}

TEST_CASE("the balance of many examples in f16 is weighed in f32") {
  manual_seed(3);
  for (bool noisy : {true, false}) {
    nn::NoisyTopKGate gate(2, 4, {.k = 1, .noisy = noisy, .initialiser = nn::normal(), .dtype = f16});
    nn::NoisyTopKGate wide = nn::clone(gate);
    wide.to(f64);
    // 10⁵ is above the largest f16.
    Tensor x = randn({100000, 2}, {.dtype = f16});
    manual_seed(4);
    Tensor loss = gate(x).balance_loss;
    manual_seed(4);
    CHECK(loss.dtype() == f16);
    CHECK(loss.item() == Approx(wide(to(x, f64)).balance_loss.item()).epsilon(0.05));
    Tape tape;
    tape.backward(gate(x).balance_loss);
    CHECK(all(isfinite(gate.weight.grad())).item<bool>());
  }
  nn::NoisyTopKGate all_of_them(2, 4, {.k = 4, .dtype = f16});
  CHECK(all_of_them(randn({70000, 2}, {.dtype = f16})).balance_loss.item() == Approx(0).margin(1e-3));
}
