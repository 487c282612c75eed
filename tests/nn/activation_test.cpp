#include <reel/debug/gradcheck.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

void check_same(const Tensor& a, const Tensor& b) {
  CHECK(a.shape() == b.shape());
  CHECK(a.to_vector<float>() == b.to_vector<float>());
}

}  // namespace

TEST_CASE("activation layers are the ops of their names") {
  manual_seed(1);
  Tensor x = randn({4, 6}) * 3;
  check_same(nn::ReLU()(x), relu(x));
  check_same(nn::Sigmoid()(x), sigmoid(x));
  check_same(nn::Tanh()(x), tanh(x));
  check_same(nn::SiLU()(x), silu(x));
  check_same(nn::SELU()(x), selu(x));
  check_same(nn::LeakyReLU()(x), leaky_relu(x));
  check_same(nn::LeakyReLU({.slope = 0.2})(x), leaky_relu(x, {.slope = 0.2}));
  check_same(nn::GELU({.approximate = GeluApproximation::tanh})(x), gelu(x, {.approximate = GeluApproximation::tanh}));
  check_same(nn::ELU({.alpha = 2})(x), elu(x, {.alpha = 2}));
  check_same(nn::Softplus({.beta = 2})(x), softplus(x, {.beta = 2}));
  check_same(nn::Mish()(x), mish(x));
  check_same(nn::Hardswish()(x), hardswish(x));
  check_same(nn::Hardsigmoid()(x), hardsigmoid(x));
  check_same(nn::LogSigmoid()(x), logsigmoid(x));
  check_same(nn::Softsign()(x), softsign(x));
  check_same(nn::CELU({.alpha = 2})(x), celu(x, {.alpha = 2}));
  check_same(nn::Softshrink({.lambda = 1})(x), softshrink(x, {.lambda = 1}));
  check_same(nn::Hardshrink({.lambda = 1})(x), hardshrink(x, {.lambda = 1}));
  check_same(nn::Hardtanh({.low = 0, .high = 6})(x), hardtanh(x, {.low = 0, .high = 6}));
  check_same(nn::Softmax()(x), softmax(x));
  check_same(nn::Softmax({.axis = 0})(x), softmax(x, 0));
  check_same(nn::LogSoftmax({.axis = 0})(x), log_softmax(x, 0));
  check_same(nn::GLU()(x), glu(x));
  check_same(nn::GLU({.axis = 0})(x), glu(x, 0));
}

TEST_CASE("activation layers are parts of models") {
  struct Model : nn::Module {
    nn::ReLU relu{*this, "relu"};
    nn::GELU gelu{*this, "gelu"};
    nn::LeakyReLU leaky{*this, "leaky", {.slope = 0.5}};
    nn::PReLU learnt{*this, "learnt"};
    nn::Dropout dropout{*this, "dropout", 0.25};
  };
  Model model;
  CHECK(model.named_modules().size() == 6);
  CHECK(model.leaky.type_name() == "LeakyReLU");
  CHECK(nn::clone(model).leaky(tensor<float>({-2})).item() == -1);
  CHECK(nn::Sequential(nn::Linear(2, 4), nn::GLU(), nn::Softmax())(ones({3, 2})).shape() == Shape{3, 2});
  CHECK_THAT(error_of<Error>([&] { model.relu(Tensor()); }), contains("ReLU: an operand is an undefined tensor"));
}

TEST_CASE("PReLU learns its slopes, one for all or one a channel") {
  nn::PReLU one;
  CHECK(one.weight.item() == 0.25);
  CHECK(one(tensor<float>({-4, 2})).to_vector<float>() == std::vector<float>{-1, 2});
  nn::PReLU two(2, {.slope = 0.5});
  two.weight.write<float>()[1] = 3;
  CHECK(two(tensor<float>({{{-2}, {-2}}})).to_vector<float>() == std::vector<float>{-1, -6});
  Tape tape;
  tape.backward(sum(two(tensor<float>({{-2, -5}, {4, -1}}))));
  CHECK(two.weight.grad().to_vector<float>() == std::vector<float>{-2, -6});
  CHECK_THAT(error_of<ShapeError>([&] { two(ones({2, 3})); }), contains("x (2, 3) does not have the 2 channels"));
  CHECK_THAT(error_of<ShapeError>([] { nn::PReLU(0); }), contains("PReLU: there must be a channel, not 0"));
}

TEST_CASE("dropout layers drop in training only") {
  manual_seed(2);
  Tensor x = ones({1000});
  nn::Dropout dropout(0.2);
  double kept = sum(to(dropout(x) != 0, f32)).item();
  CHECK(kept > 740);
  CHECK(kept < 860);
  CHECK(max(dropout(x)).item() == Approx(1.25));
  dropout.eval();
  check_same(dropout(x), x);
  nn::AlphaDropout alpha(0.5);
  CHECK(min(alpha(x)).item() < 0);
  alpha.eval();
  check_same(alpha(x), x);
}

TEST_CASE("variational dropout has one mask for all steps") {
  manual_seed(3);
  nn::VariationalDropout dropout({.probability = 0.5, .axis = 0});
  Tensor y = dropout(ones({6, 4, 8}));
  for (int t = 1; t < 6; ++t) check_same(copy(y(t)), copy(y(0)));
  CHECK(min(y).item() == 0);
  CHECK(max(y).item() == 2);
  dropout.eval();
  CHECK(min(dropout(ones({6, 4, 8}))).item() == 1);
}

TEST_CASE("a dropout layer draws from the generator it is given, and refuses what is no probability") {
  Generator first(5), second(5);
  Tensor x = ones({50});
  check_same(nn::Dropout(0.5, &first)(x), nn::Dropout(0.5, &second)(x));
  int line = __LINE__ + 1;
  std::string text = error_of<Error>([] { nn::Dropout(1.5); });
  CHECK(text == "Dropout: a probability lies between 0 and 1, not 1.5; at " + to_string(Location{__FILE__, line}));
  CHECK_THROWS_AS(nn::AlphaDropout(-0.1), Error);
  CHECK_THROWS_AS(nn::VariationalDropout({.probability = 2}), Error);
}
