#include <reel/reel.h>

#include "catch.h"

using namespace reel;
using debug::gradcheck;
using debug::GradcheckReport;
using debug::gradgradcheck;
using namespace reel_test;

namespace {

Tensor sample(const Shape& shape) { return reshape(arange(shape.numel(), {.dtype = f64}), shape) * 0.3 + 0.2; }

// Correct except for one element, whose gradient is three times too small: the derivative of u³ with u² constant.
Tensor wrong_at_one_two(std::span<const Tensor> x) {
  Tensor chosen = zeros({2, 3}, {.dtype = f64});
  chosen.write<double>()[5] = 1;
  Tensor cubes = x[0] * x[0] * x[0];
  return where(chosen > 0.0, x[0] * stop_gradient(square(x[0])), cubes);
}

}  // namespace

TEST_CASE("a right gradient agrees, and the report says how many derivatives did") {
  Tensor x = sample({2, 3}), w = sample({3, 2});
  auto f = [](std::span<const Tensor> in) { return tanh(matmul(in[0], in[1])); };
  GradcheckReport report = gradcheck(f, {x, w});
  CHECK(report.agrees);
  CHECK(static_cast<bool>(report));
  CHECK(report.text == "gradcheck: all 48 derivatives agree");
  CHECK(gradgradcheck(f, {x, w}));
}

TEST_CASE("a wrong gradient disagrees, and the report names the worst element") {
  Tensor x = sample({2, 3});
  GradcheckReport report = gradcheck(wrong_at_one_two, {x});
  CHECK_FALSE(report);
  CHECK_THAT(report.text, contains("gradcheck: 1 of 36 derivatives disagree"));
  CHECK_THAT(report.text,
             contains("worst: output[1, 2] by input 0[1, 2] at 1.7: the tape says 2.89, the difference 8.67"));
}

TEST_CASE("a function that is right to first order only is found by the second") {
  // d/dx of stop(x) · x is x, as that of x² / 2; its own derivative is not.
  auto f = [](std::span<const Tensor> in) {
    return square(in[0]) * 0.5 + stop_gradient(in[0]) * in[0] - stop_gradient(square(in[0])) +
           stop_gradient(square(in[0]) * 0) - (stop_gradient(in[0]) * in[0] - stop_gradient(square(in[0])));
  };
  CHECK(gradcheck(f, {sample({3})}));
  CHECK(gradgradcheck(f, {sample({3})}));
  auto half_wrong = [](std::span<const Tensor> in) {
    Tensor y = stop_gradient(in[0]) * in[0];
    return y - stop_gradient(y) + stop_gradient(square(in[0]) * 0.5);
  };
  CHECK(gradcheck(half_wrong, {sample({3})}));
  GradcheckReport report = gradgradcheck(half_wrong, {sample({3})});
  CHECK_FALSE(report);
  CHECK_THAT(report.text, contains("gradgradcheck: 3 of"));
  CHECK_THAT(report.text, contains("the tape says 0"));
}

TEST_CASE("a derivative that is not a number disagrees") {
  auto f = [](std::span<const Tensor> in) { return sqrt(in[0]) * 0; };
  CHECK_FALSE(gradcheck(f, {zeros({1}, {.dtype = f64})}));
}

TEST_CASE("a result that no gradient reaches is an error that says so") {
  auto constant = [](std::span<const Tensor> in) { return stop_gradient(in[0] * 2); };
  CHECK_THAT(error_of<TapeError>([&] { gradcheck(constant, {sample({2})}); }), contains("only through stop_gradient"));
}

TEST_CASE("gradients are checked in f64 alone") {
  auto f = [](std::span<const Tensor> in) { return in[0] * 2; };
  CHECK_THAT(error_of<DTypeError>([&] { gradcheck(f, {ones({2})}); }), contains("gradcheck: takes f64 inputs"));
  CHECK_THAT(error_of<DTypeError>([&] { gradgradcheck(f, {Tensor{}}); }), contains("an undefined tensor"));
  auto narrow = [](std::span<const Tensor> in) { return to(in[0], f32); };
  CHECK_THAT(error_of<DTypeError>([&] { gradcheck(narrow, {sample({2})}); }), contains("must give f64"));
}

TEST_CASE("a check leaves inputs, parameters and memory as they were") {
  Tensor x = transpose(sample({2, 3})).requires_grad();
  std::vector<double> before = x.to_vector<double>();
  std::int64_t tensors = memory_statistics().live_tensors;
  CHECK(gradcheck([](std::span<const Tensor> in) { return square(in[0]); }, {x}));
  CHECK(gradgradcheck([](std::span<const Tensor> in) { return square(in[0]); }, {x}));
  CHECK(x.to_vector<double>() == before);
  CHECK_FALSE(x.grad().defined());
  CHECK(memory_statistics().live_tensors == tensors);
}

namespace {

struct Net : nn::Module {
  nn::Linear hidden{*this, "hidden", 2, 3, {.dtype = f64}};
  nn::Linear output{*this, "output", 3, 1, {.dtype = f64}};

  Tensor operator()(const Arg& x) const {
    return call("Net", x, [&](const Tensor& x) { return output(tanh(hidden(x))); });
  }
};

}  // namespace

TEST_CASE("gradients by the parameters of a model are checked under their names") {
  Net model;
  Tensor x = sample({4, 2}), y = sample({4, 1});
  auto loss = [&] { return mse_loss(model(x), y); };
  GradcheckReport report = gradcheck(model, loss);
  CHECK(report);
  CHECK(report.text == "gradcheck: all 13 derivatives agree");
  CHECK(gradgradcheck(model, loss));
  // The gradient by the bias alone is wrong.
  auto wrong = [&] { return sum(square(model(x))) + stop_gradient(sum(model.hidden.bias * 100)); };
  GradcheckReport found = gradcheck(model, wrong);
  CHECK_FALSE(found);
  CHECK_THAT(found.text, contains("worst: output[] by hidden.bias["));
  auto wrong_twice = [&] {
    Tensor bias = model.hidden.bias;
    Tensor z = stop_gradient(bias) * bias;
    return sum(model(x)) + sum(z - stop_gradient(z) + stop_gradient(square(bias) * 0.5));
  };
  CHECK_THAT(gradgradcheck(model, wrong_twice).text, contains("by hidden.bias["));
  model.freeze("hidden.*");
  CHECK(gradcheck(model, loss).text == "gradcheck: all 4 derivatives agree");
  CHECK_FALSE(model.output.bias.grad().defined());
}

TEST_CASE("a model is checked only in f64, and with something to train") {
  nn::Linear single(2, 3);
  auto loss = [&] { return sum(single(ones({1, 2}))); };
  CHECK_THAT(error_of<DTypeError>([&] { gradcheck(single, loss); }),
             contains("gradcheck: the parameter 'weight' is (2, 3) f32; ") && contains("model.to(DType::f64)"));
  single.freeze("*");
  CHECK_THAT(error_of<Error>([&] { gradgradcheck(single, loss); }),
             contains("gradgradcheck: Linear has no parameters to train"));
}

TEST_CASE("the example of a model's check agrees") {
  nn::Linear model(2, 1);
  Tensor x = sample({4, 2}), y = sample({4, 1});
#include "examples/debug_gradcheck_1.h"
}
