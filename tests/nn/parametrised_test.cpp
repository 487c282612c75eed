#include <reel/debug/gradcheck.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>

#include <cmath>
#include <string>
#include <vector>

#include "catch.h"
#include "checks.h"
#include "overlap.h"

using namespace reel;
using namespace reel_test;

namespace {

#include "examples/nn_parametrised_1.h"
#include "examples/nn_parametrised_2.h"

// The largest singular value, by Jacobi rotations of the columns.
double largest_singular_value(const Tensor& matrix) {
  std::vector<double> a = matrix.to_vector<double>();
  auto rows = static_cast<std::size_t>(matrix.size(0)), columns = static_cast<std::size_t>(matrix.size(1));
  for (int sweep = 0; sweep < 60; ++sweep)
    for (std::size_t p = 0; p < columns; ++p)
      for (std::size_t q = p + 1; q < columns; ++q) {
        double pp = 0, qq = 0, pq = 0;
        for (std::size_t i = 0; i < rows; ++i) {
          pp += a[i * columns + p] * a[i * columns + p];
          qq += a[i * columns + q] * a[i * columns + q];
          pq += a[i * columns + p] * a[i * columns + q];
        }
        double angle = std::atan2(2 * pq, pp - qq) / 2, c = std::cos(angle), s = std::sin(angle);
        for (std::size_t i = 0; i < rows; ++i) {
          double x = a[i * columns + p], y = a[i * columns + q];
          a[i * columns + p] = c * x + s * y;
          a[i * columns + q] = c * y - s * x;
        }
      }
  double largest = 0;
  for (std::size_t j = 0; j < columns; ++j) {
    double square = 0;
    for (std::size_t i = 0; i < rows; ++i) square += a[i * columns + j] * a[i * columns + j];
    largest = std::max(largest, std::sqrt(square));
  }
  return largest;
}

}  // namespace

TEST_CASE("WeightNorm starts as the layer that it wraps, and trains a magnitude and a direction") {
  nn::Linear plain(3, 4, {.dtype = f64});
  Tensor x = randn({5, 3}, {.dtype = f64}), weight = plain.weight, expected = plain(x);
  nn::WeightNorm<nn::Linear> layer(std::move(plain));
  CHECK(names_of(layer.named_parameters()) == std::vector<std::string>{"layer.bias", "direction", "magnitude"});
  CHECK(layer.magnitude.shape() == Shape{1, 4});
  check_close(layer(x), expected, 1e-14);
  check_close(layer.effective_weight(), weight, 1e-15);
  CHECK_FALSE(layer.layer.weight.defined());

  // w = g v / |v|, column by column
  std::vector<double> v = layer.direction.to_vector<double>(), w;
  {
    NoRecord pause;
    copy_(layer.magnitude, tensor({{2.0, 3.0, 0.5, -1.0}}));
    w = layer.effective_weight().to_vector<double>();
  }
  constexpr double magnitudes[] = {2, 3, 0.5, -1};
  for (std::size_t j = 0; j < 4; ++j) {
    double length = std::sqrt(v[j] * v[j] + v[4 + j] * v[4 + j] + v[8 + j] * v[8 + j]);
    for (std::size_t i = 0; i < 3; ++i) CHECK(w[4 * i + j] == Approx(magnitudes[j] * v[4 * i + j] / length));
  }
}

TEST_CASE("the gradients of normalised weights agree with differences, to the second order") {
  nn::WeightNorm weight_norm(nn::Linear(3, 2, {.dtype = f64}));
  nn::SpectralNorm spectral_norm(nn::Linear(3, 2, {.dtype = f64}));
  spectral_norm.eval();
  Tensor x = randn({4, 3}, {.dtype = f64});
  auto check = [](const auto& report) {
    INFO(report.text);
    CHECK(report);
  };
  check(debug::gradcheck(weight_norm, [&] { return sum(tanh(weight_norm(x))); }));
  check(debug::gradgradcheck(weight_norm, [&] { return sum(tanh(weight_norm(x))); }));
  check(debug::gradcheck(spectral_norm, [&] { return sum(tanh(spectral_norm(x))); }));
  check(debug::gradgradcheck(spectral_norm, [&] { return sum(tanh(spectral_norm(x))); }));
}

TEST_CASE("SpectralNorm divides by the largest singular value, which it follows through training") {
  nn::SpectralNorm layer(nn::Linear(6, 5, {.dtype = f64}), {.power_iterations = 100});
  CHECK(names_of(layer.named_parameters()) == std::vector<std::string>{"layer.bias", "original"});
  CHECK(names_of(layer.named_buffers()) == std::vector<std::string>{"u", "v"});
  for (int step = 0; step < 3; ++step) {
    layer(zeros({1, 6}, {.dtype = f64}));
    double sigma = largest_singular_value(layer.original);
    check_close(layer.effective_weight() * sigma, layer.original, 1e-6);
    NoRecord pause;
    add_(layer.original, randn({6, 5}, {.dtype = f64}));
  }
}

TEST_CASE("SpectralNorm changes its vectors in training only, and two calls fit on one tape") {
  manual_seed(1);  // of some weights the first iterations find the vectors to the bit
  nn::SpectralNorm layer(nn::Linear(6, 5));
  Tensor x = randn({2, 6});
  std::vector<float> u = layer.u.to_vector<float>();
  layer.eval();
  layer(x);
  CHECK(layer.u.to_vector<float>() == u);
  layer.train();
  Tape tape;
  Tensor loss = sum(layer(x)) - sum(layer(2 * x));
  CHECK(layer.u.to_vector<float>() != u);
  tape.backward(loss);
  CHECK(layer.original.grad().defined());
}

TEST_CASE("normalised convolutions take the axis of their outputs") {
  nn::WeightNorm convolution(nn::Conv2d(2, 3, 3));
  CHECK(convolution.magnitude.shape() == Shape{3, 1, 1, 1});
  CHECK(convolution(randn({1, 2, 5, 5})).shape() == Shape{1, 3, 3, 3});
  nn::WeightNorm transposed(nn::ConvTransposed2d(2, 3, 3), {.axis = 1});
  CHECK(transposed.magnitude.shape() == Shape{1, 3, 1, 1});
  nn::SpectralNorm spectral(nn::Conv2d(2, 3, 3, {.bias = false}), {.power_iterations = 200});
  spectral(zeros({1, 2, 3, 3}));
  CHECK(largest_singular_value(reshape(to(spectral.effective_weight(), f64), {3, 18})) == Approx(1).epsilon(1e-3));
}

TEST_CASE("a normalised layer is cloned, moved into a Sequential, and computed with other parameters") {
  nn::WeightNorm layer(nn::Linear(3, 2));
  Tensor x = randn({4, 3});
  std::vector<float> expected = layer(x).to_vector<float>();
  nn::WeightNorm<nn::Linear> copy = nn::clone(layer);
  CHECK_FALSE(copy.direction.is(layer.direction));
  CHECK(copy(x).to_vector<float>() == expected);
  std::vector<NamedTensor> doubled = layer.named_parameters();
  for (NamedTensor& named : doubled)
    if (named.name != "direction") named.tensor = 2 * named.tensor;
  std::vector<float> twice = nn::functional_call(layer, doubled, x).to_vector<float>();
  for (std::size_t i = 0; i < twice.size(); ++i) CHECK(twice[i] == Approx(2 * expected[i]).margin(1e-6));
  nn::Sequential net(std::move(layer), relu);
  CHECK(names_of(net.named_parameters()) == std::vector<std::string>{"0.layer.bias", "0.direction", "0.magnitude"});
  CHECK(net(x).shape() == Shape{4, 2});
}

TEST_CASE("a layer with a computed weight may be called while another thread is within its call") {
  nn::WeightNorm weight_norm(nn::Linear(8, 8));
  nn::SpectralNorm spectral_norm(nn::Linear(8, 8));
  spectral_norm.eval();
  Tensor x = randn({2, 8});
  auto check = [&](auto& layer) {
    std::vector<float> expected = layer(x).template to_vector<float>();
    Overlap overlap;
    auto hook = layer.layer.before_forward([&](std::span<Tensor>) { overlap.enter(); });
    CHECK(overlap.run([&] { return layer(x).template to_vector<float>() == expected; },
                      [&] { return layer(x).template to_vector<float>() == expected; }));
    CHECK_FALSE(layer.layer.weight.defined());
  };
  check(weight_norm);
  check(spectral_norm);
}

TEST_CASE("a wrapped layer's hooks run, and its operations are counted") {
  nn::WeightNorm layer(nn::Linear(3, 2));
  int calls = 0;
  auto hook = layer.layer.after_forward([&](std::span<Tensor> results) {
    ++calls;
    results[0] = 2 * results[0];
  });
  Tensor x = randn({4, 3});
  check_close(layer(x), 2 * (matmul(x, layer.effective_weight()) + layer.layer.bias), 1e-6);
  CHECK(calls == 1);
  CHECK(layer.layer.last_flops() == 2 * 4 * 3 * 2);
}

TEST_CASE("an optimiser trains normalised layers") {
  Generator generator(3);
  Critic critic;
  Tensor x = randn({64, 2}, {.generator = &generator}), y = sum(x, {1}, {.keepdims = true});
  optim::Adam adam(critic.parameters(), {.learning_rate = 0.02});
  double first = 0, last = 0;
  for (int step = 0; step < 200; ++step) {
    Tape tape;
    Tensor loss = mse_loss(critic(x), y);
    last = loss.item();
    if (step == 0) first = last;
    tape.backward(loss);
    adam.step();
    adam.zero_grad();
  }
  CHECK(last < first / 10);
}

TEST_CASE("a weight may be any function of a program's own parameter") {
  Symmetric layer(nn::Linear(3, 3));
  CHECK(names_of(layer.named_parameters()) == std::vector<std::string>{"layer.bias", "free"});
  Tensor weight = layer.effective_weight();
  CHECK(weight.to_vector<float>() == transpose(weight, 0, 1).to_vector<float>());
  Tensor x = randn({2, 3});
  check_close(layer(x), matmul(x, weight) + layer.layer.bias, 1e-6);
}

TEST_CASE("what cannot be parametrised is refused with what to do") {
  CHECK_THAT(
      error_of<Error>([] { nn::WeightNorm(nn::Linear(nn::infer_size, 2)); }),
      contains("Parametrised: the Linear has no weight yet; give it its input size, or call it once before it is "
               "wrapped; at ") &&
          contains("parametrised_test.cpp:"));
  CHECK_THAT(error_of<ShapeError>([] { nn::WeightNorm(nn::Linear(3, 2), {.axis = 2}); }),
             contains("WeightNorm: axis 2 does not exist in (3, 2) f32"));
  CHECK_THAT(error_of<Error>([] { nn::SpectralNorm(nn::Linear(3, 2), {.power_iterations = 0}); }),
             contains("SpectralNorm: power_iterations 0 must be at least 1"));
  struct Wrong : nn::Parametrised<nn::Linear> {
    using Parametrised::Parametrised;
    Tensor effective_weight() const override { return zeros({3, 3}); }
  };
  Wrong wrong(nn::Linear(3, 2));
  CHECK_THAT(
      error_of<ShapeError>([&] {
        wrong(zeros({1, 3}));
      }),
      contains("Parametrised: effective_weight gave (3, 3) f32 for the Linear, whose weight is of shape (3, 2)"));
}
