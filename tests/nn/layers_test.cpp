#include <reel/checkpoint.h>
#include <reel/debug/gradcheck.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/sparse.h>
#include <reel/tape.h>

#include <cmath>

#include "catch.h"

using namespace reel;
using namespace reel_test;

TEST_CASE("Linear is x W + b, with the weight as (in, out)") {
  nn::Linear layer(2, 3);
  CHECK(layer.weight.shape() == Shape{2, 3});
  CHECK(layer.bias.shape() == Shape{3});
  std::vector<float> w = layer.weight.to_vector<float>(), b = layer.bias.to_vector<float>();
  std::vector<float> y = layer(tensor({{1.f, 2.f}, {-3.f, 0.5f}})).to_vector<float>();
  for (std::size_t j = 0; j < 3; ++j) {
    CHECK(y[j] == Approx(w[j] + 2 * w[3 + j] + b[j]));
    CHECK(y[3 + j] == Approx(-3 * w[j] + 0.5 * w[3 + j] + b[j]));
  }
}

TEST_CASE("Linear takes any number of leading axes") {
  nn::Linear layer(2, 3, {.bias = false});
  CHECK_FALSE(layer.bias.defined());
  CHECK(layer.parameters().size() == 1);
  CHECK(layer(ones({2})).shape() == Shape{3});
  CHECK(layer(ones({4, 5, 2})).shape() == Shape{4, 5, 3});
  CHECK(layer(ones({0, 2})).shape() == Shape{0, 3});
}

TEST_CASE("Linear starts uniform on one over the root of its inputs, from the generator it is given") {
  Generator first(3), second(3);
  nn::Linear layer(100, 50, {.generator = &first}), same(100, 50, {.generator = &second});
  CHECK(layer.weight.to_vector<float>() == same.weight.to_vector<float>());
  CHECK(max(layer.weight).item() <= 0.1);
  CHECK(max(layer.weight).item() > 0.099);
  CHECK(max(-layer.bias).item() <= 0.1);
}

TEST_CASE("Linear's gradient and its gradient's gradient agree with differences") {
  nn::Linear layer(3, 2, {.dtype = f64});
  auto f = [&](std::span<const Tensor> inputs) { return tanh(layer(inputs[0])); };
  Tensor x = randn({2, 3}, {.dtype = f64});
  auto report = debug::gradcheck(f, {x});
  INFO(report.text);
  CHECK(report);
  auto second = debug::gradgradcheck(f, {x});
  INFO(second.text);
  CHECK(second);
}

TEST_CASE("a Linear that learns its input size makes its parameters at the first call") {
#include "examples/nn_linear_1.h"
  CHECK(net.at<nn::Linear>(3).weight.shape() == Shape{8 * 24 * 24, 10});
  CHECK(net.named_parameters().size() == 4);

  Generator first(3), second(3);
  nn::Linear inferred(nn::infer_size, 50, {.dtype = f64, .generator = &first}),
      given(100, 50, {.dtype = f64, .generator = &second});
  Tensor x = randn({2, 100}, {.dtype = f64});
  CHECK(inferred(x).shape() == Shape{2, 50});
  CHECK(max(abs(inferred.weight)).item() <= 0.1);
  CHECK(max(abs(inferred.weight)).item() > 0.099);
  CHECK(inferred.weight.dtype() == f64);
  CHECK(inferred.weight.is_parameter());
  Tensor weight = inferred.weight;
  inferred(x);
  CHECK(inferred.weight.is(weight));
  CHECK_THAT(error_of<ShapeError>([&] {
               inferred(ones({2, 7}, {.dtype = f64}));
             }),
             contains("x (2, 7) does not end in an axis of size 100"));

  nn::Linear sparse(nn::infer_size, 3, {.bias = false});
  CSRMatrix rows = csr_from_dense(eye(4));
  CHECK(sparse(rows).shape() == Shape{4, 3});
  CHECK(sparse.weight.shape() == Shape{4, 3});
  CHECK_FALSE(sparse.bias.defined());
}

TEST_CASE("a Linear that learns its input size gets gradients from the tape of its first call") {
  nn::Linear layer(nn::infer_size, 2);
  Tape tape;
  tape.backward(sum(layer(ones({3, 4}))));
  CHECK(layer.weight.grad().to_vector<float>() == std::vector<float>(8, 3));
  CHECK(layer.bias.grad().to_vector<float>() == std::vector<float>(2, 3));
}

TEST_CASE("parameters that are not made yet cannot be listed, nor made for one example of several") {
  nn::Sequential net(nn::Linear(nn::infer_size, 2), relu);
  std::string text = error_of<Error>([&] { net.parameters(); });
  CHECK_THAT(text, contains("Linear: it has no parameters before its first call, which tells it its input size; call "
                            "the model once before its parameters are listed, converted, saved or loaded") &&
                       contains("layers_test.cpp:"));
  CHECK_THROWS_AS(net.to(f64), Error);
  {
    Tape tape;
    Tensor x = ones({2, 3});
    tape.watch(x);
    CHECK_THAT(error_of<Error>([&] { checkpoint([&](const Tensor& x) { return net(x); }, x); }),
               contains("is within batch_map, checkpoint or functional_call; call the model once before"));
  }
  nn::Sequential copy = nn::clone(net);
  CHECK(copy(ones({2, 3})).shape() == Shape{2, 2});
  CHECK_THROWS_AS(net.parameters(), Error);
  CHECK(net(ones({2, 5})).shape() == Shape{2, 2});
  CHECK_THAT(error_of<ShapeError>([] { nn::Linear(nn::infer_size, 0); }), contains("sizes must be positive"));
  CHECK_THAT(error_of<ShapeError>([] { nn::Linear(0, 3); }),
             contains("sizes must be positive, not in 0, out 3; in may be nn::infer_size"));
}

TEST_CASE("Linear names the caller's line and both shapes if they do not fit") {
  nn::Linear layer(4, 2);
  Tensor x = ones({3, 5});
  int line = __LINE__ + 1;
  std::string text = error_of<ShapeError>([&] { layer(x); });
  CHECK(text == "Linear: x (3, 5) does not end in an axis of size 4, as the weight (4, 2) needs; at " +
                    to_string(Location{__FILE__, line}));
  CHECK_THAT(error_of<ShapeError>([&] { layer(full({}, 1.0)); }), contains("x () does not end in an axis of size 4"));
  CHECK_THAT(error_of<Error>([&] { layer(Tensor()); }), contains("Linear: an operand is an undefined tensor"));
  CHECK_THAT(error_of<ShapeError>([] { nn::Linear(0, 2); }), contains("sizes must be positive, not in 0, out 2"));
}

TEST_CASE("Embedding gives the rows of its table") {
  nn::Embedding table(4, 2);
  std::vector<float> rows = table.table.to_vector<float>();
  Tensor y = table(tensor<std::int64_t>({{1, 3}, {0, 1}}));
  CHECK(y.shape() == Shape{2, 2, 2});
  CHECK(y.to_vector<float>() ==
        std::vector<float>{rows[2], rows[3], rows[6], rows[7], rows[0], rows[1], rows[2], rows[3]});
}

TEST_CASE("Embedding names the caller's line for an index that is no symbol") {
  nn::Embedding table(4, 2);
  Tensor index = tensor<std::int64_t>({4});
  int line = __LINE__ + 1;
  std::string text = error_of<IndexError>([&] { table(index); });
  CHECK_THAT(text, contains("index 4 is out of range for axis 0 of (4, 2) f32"));
  CHECK_THAT(text, contains(to_string(Location{__FILE__, line})));
  CHECK_THAT(error_of<DTypeError>([&] { table(ones({1})); }), contains("indices are i32 or i64"));
  CHECK_THAT(error_of<ShapeError>([] { nn::Embedding(3, -1); }), contains("not count 3, size -1"));
}

TEST_CASE("Highway mixes its input with the transformed one by a gate, and begins near the input") {
  manual_seed(3);
  nn::Highway layer(3, {.activation = tanh, .dtype = f64});
  Tensor x = randn({2, 4, 3}, {.dtype = f64});
  Tensor g = sigmoid(matmul(x, layer.gate.weight) + layer.gate.bias);
  Tensor expected = g * tanh(matmul(x, layer.transform.weight) + layer.transform.bias) + (1.0 - g) * x;
  Tensor y = layer(x);
  CHECK(y.shape() == x.shape());
  std::vector<double> is = y.to_vector<double>(), wanted = expected.to_vector<double>();
  for (std::size_t i = 0; i < is.size(); ++i) CHECK(is[i] == Approx(wanted[i]));
  CHECK(layer.gate.bias.to_vector<double>() == std::vector<double>(3, -2.0));
  CHECK(layer.parameters().size() == 4);

  auto f = [](std::span<const Tensor> a) {
    Tensor gate = sigmoid(matmul(a[0], a[1]));
    return lerp(a[0], tanh(matmul(a[0], a[2])), gate);
  };
  CHECK(debug::gradcheck(f, {x, layer.gate.weight, layer.transform.weight}).agrees);
  CHECK_THAT(error_of<ShapeError>([] { nn::Highway(0); }), contains("Linear: sizes must be positive, not in 0, out 0"));
  CHECK_THAT(error_of<Error>([] { nn::Highway(2, {.activation = nullptr}); }),
             contains("Highway: the activation is null"));
  CHECK_THAT(error_of<ShapeError>([&] {
               layer(zeros({2, 4}, {.dtype = f64}));
             }),
             contains("Linear: x (2, 4) does not end in an axis of size 3"));
}

TEST_CASE("a layer refuses an input of another dtype than its weights, as PyTorch does") {
  nn::Linear linear(3, 2);
  Tensor x = ones({2, 3}, {.dtype = f64});
  int line = __LINE__ + 1;
  std::string text = error_of<DTypeError>([&] { linear(x); });
  CHECK(text ==
        "Linear: x (2, 3) f64 has not the dtype of the weight (3, 2) f32; convert x with to(x, f32), or the layer "
        "with to(f64); at " +
            to_string(Location{__FILE__, line}));
  CHECK_THAT(error_of<DTypeError>([&] {
               linear(ones({2, 3}, {.dtype = i64}));
             }),
             contains("convert x with to(x, f32); at"));
  CHECK(linear(to(x, f32)).dtype() == f32);
  {
    auto scope = autocast(bf16);
    CHECK(linear(to(x, f32)).dtype() == bf16);
    CHECK(linear(to(x, bf16)).dtype() == bf16);
  }
  linear.to(f64);
  CHECK(linear(x).dtype() == f64);

  Tensor wide = ones({2, 4, 3}, {.dtype = f64}), image = ones({2, 3, 4, 4}, {.dtype = f64});
  auto refuses = [](const char* name, auto f) {
    CAPTURE(name);
    CHECK_THAT(error_of<DTypeError>(f), contains(name) && contains("f64") && contains("f32"));
  };
  refuses("Bilinear", [&] { nn::Bilinear(3, 3, 2)(x, x); });
  refuses("LayerNorm", [&] { nn::LayerNorm({3})(x); });
  refuses("RMSNorm", [&] { nn::RMSNorm({3})(x); });
  refuses("GroupNorm", [&] { nn::GroupNorm(1, 3)(image); });
  refuses("InstanceNorm2d", [&] { nn::InstanceNorm2d(3, {.affine = true})(image); });
  refuses("BatchNorm2d", [&] { nn::BatchNorm2d(3)(image); });
  refuses("conv2d", [&] { nn::Conv2d(3, 2, 3)(image); });
  refuses("conv_transposed2d", [&] { nn::ConvTransposed2d(3, 2, 3)(image); });
  refuses("LSTM", [&] { nn::LSTM(3, 2)(wide); });
  refuses("GRU", [&] { nn::GRU(3, 2)(wide); });
  refuses("RNN", [&] { nn::RNN(3, 2)(wide); });
  refuses("lstm_cell", [&] {
    nn::LSTMCell cell(3, 2);
    cell(x, cell.initial_state(2));
  });
  refuses("gru_cell", [&] {
    nn::GRUCell cell(3, 2);
    cell(x, zeros({2, 2}));
  });
  refuses("rnn_cell", [&] {
    nn::RNNCell cell(3, 2);
    cell(x, zeros({2, 2}));
  });
  refuses("Linear", [&] { nn::MultiHeadAttention(3, 1)(wide); });
}
