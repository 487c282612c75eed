#include <reel/io.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>
#include <reel/testing.h>

#include <vector>

#include "catch.h"
#include "io/folder.h"
#include "rounded.h"

// Recurrent modules that round their weights in products, beside modules of f64 whose weights the test has rounded.

using namespace reel;
using namespace reel_test;

namespace {

constexpr std::uint64_t seed = 29;

// Gives a module of f64 the parameters of one of f32, with weights rounded.
void copy_rounded(const nn::Module& from, const nn::Module& to, DType dtype) {
  std::vector<NamedTensor> values = from.named_parameters(), places = to.named_parameters();
  REQUIRE(values.size() == places.size());
  NoRecord pause;
  for (std::size_t i = 0; i < values.size(); ++i) {
    bool rounds = values[i].name.ends_with("W_x") || values[i].name.ends_with("W_h");
    copy_(places[i].tensor, rounds ? reel_test::rounded(values[i].tensor, dtype) : reel::to(values[i].tensor, f64));
  }
}

// A number of the results, and its gradients.
template <class F>
std::vector<Tensor> gradients_of(const nn::Module& module, F f) {
  Tape tape;
  Tensor y = f();
  Tensor factors = to(cos(arange(y.numel(), {.dtype = f64}) * 1.3), y.dtype());
  std::vector<Tensor> all = tape.gradient(sum(y * reshape(factors, y.shape())), module.parameters());
  all.push_back(y);
  return all;
}

void check_close(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    REQUIRE(found[i].shape() == expected[i].shape());
    CHECK((max(abs(to(found[i], f64) - expected[i])) / (max(abs(expected[i])) + 1e-3)).item() < 2e-5);
  }
}

// Calls check(module, reference) for a module with rounded weights, and one of f64 that has these weights.
template <class Module, class Options, class Check>
void for_rounded(Options options, Check check) {
  for (DType dtype : {bf16, f16}) {
    CAPTURE(seed, reel::name_of(dtype));
    manual_seed(seed);
    options.dtype = f32;
    options.weight_dtype = dtype;
    Module module(6, 9, options);
    options.dtype = f64;
    options.weight_dtype = {};
    Module reference(6, 9, options);
    copy_rounded(module, reference, dtype);
    check(module, reference);
  }
}

// A layer on padded sequences, on some of several lengths, and on packed ones.
template <class Layer, class Options>
void check_layer(const Options& options) {
  for_rounded<Layer>(options, [](Layer& layer, Layer& reference) {
    for (std::int64_t batch : {1, 3, 6}) {
      CAPTURE(batch);
      Tensor x = randn({4, batch, 6}), lengths = slice(tensor<std::int64_t>({4, 1, 0, 3, 2, 4}), 0, 0, batch);
      for (const Tensor& counts : {Tensor(), lengths})
        check_close(gradients_of(layer, [&] { return layer(x, {}, counts).output; }),
                    gradients_of(reference, [&] { return reference(to(x, f64), {}, counts).output; }));
      check_close(gradients_of(layer, [&] { return layer(nn::pack(x, lengths)).output.elements; }),
                  gradients_of(reference, [&] { return reference(nn::pack(to(x, f64), lengths)).output.elements; }));
    }
  });
}

// A cell's steps in a loop.
template <class Cell, class Options>
void check_cell(const Options& options) {
  for_rounded<Cell>(options, [](Cell& cell, Cell& reference) {
    for (std::int64_t batch : {1, 5}) {
      CAPTURE(batch);
      Tensor x = randn({3, batch, 6});
      auto run = [&](const Cell& one, const Tensor& x) {
        auto state = one.initial_state(batch);
        std::vector<Tensor> outputs;
        for (std::int64_t t = 0; t < 3; ++t) {
          state = one(x(t), state);
          if constexpr (std::is_same_v<Cell, nn::LSTMCell>)
            outputs.push_back(state.h);
          else
            outputs.push_back(state);
        }
        return stack(outputs);
      };
      check_close(gradients_of(cell, [&] { return run(cell, x); }),
                  gradients_of(reference, [&] { return run(reference, to(x, f64)); }));
    }
  });
}

}  // namespace

TEST_CASE("recurrent layers with a weight_dtype compute with rounded weights") {
  check_layer<nn::LSTM>(nn::LSTMOptions{});
  check_layer<nn::LSTM>(nn::LSTMOptions{.layers = 2, .bidirectional = true});
  check_layer<nn::LSTM>(nn::LSTMOptions{.bidirectional = true, .merge = nn::MergeDirections::sum});
  check_layer<nn::LSTM>(nn::LSTMOptions{.layers = 2, .projection = 4});
  check_layer<nn::LSTM>(nn::LSTMOptions{.bidirectional = true, .layer_norm = true});
  check_layer<nn::GRU>(nn::GRUOptions{});
  check_layer<nn::GRU>(nn::GRUOptions{.layers = 2, .bidirectional = true});
  check_layer<nn::RNN>(nn::RNNLayerOptions{});
  check_layer<nn::RNN>(nn::RNNLayerOptions{.bidirectional = true, .activation = RNNActivation::relu});
}

TEST_CASE("recurrent cells with a weight_dtype compute with rounded weights") {
  check_cell<nn::LSTMCell>(nn::LSTMCellOptions{.forget_bias = 1});
  check_cell<nn::LSTMCell>(nn::LSTMCellOptions{.projection = 4});
  check_cell<nn::LSTMCell>(nn::LSTMCellOptions{.projection = 4, .layer_norm = true});
  check_cell<nn::GRUCell>(nn::GRUCellOptions{});
  check_cell<nn::RNNCell>(nn::RNNCellOptions{});
}

TEST_CASE("projected steps of an LSTMCell with a weight_dtype are those from its inputs") {
  manual_seed(seed);
  nn::LSTMCell cell(40, 30, {.weight_dtype = bf16});
  Tensor x = randn({3, 2, 40}), projected = cell.project(x);
  LSTMState state = cell.initial_state(2), other = state;
  for (std::int64_t t = 0; t < 3; ++t) {
    state = cell(x(t), state);
    other = cell.step(projected(t), other);
  }
  CHECK(testing::all_close(state.h, other.h, {.relative = 1e-5, .absolute = 1e-6}));
}

TEST_CASE("a module with a weight_dtype trains its f32 parameters, and rounds their new values") {
  manual_seed(seed);
  nn::LSTM layer(5, 8, {.weight_dtype = bf16}), reference(5, 8, {.dtype = f64});
  optim::SGD sgd(layer.parameters(), {.learning_rate = 0.1});
  Tensor x = randn({4, 1, 5});
  for (int step = 0; step < 3; ++step) {
    copy_rounded(layer, reference, bf16);
    check_close(gradients_of(layer, [&] { return layer(x).output; }),
                gradients_of(reference, [&] { return reference(to(x, f64)).output; }));
    Tape tape;
    tape.backward(sum(square(layer(x).output)));
    std::vector<float> before = layer.nets[0].W_h.to_vector<float>(),
                       gradient = layer.nets[0].W_h.grad().to_vector<float>();
    sgd.step();
    std::vector<float> after = layer.nets[0].W_h.to_vector<float>();
    for (std::size_t i = 0; i < after.size(); ++i)
      CHECK(after[i] == Approx(before[i] - 0.1F * gradient[i]).margin(1e-7));
    sgd.zero_grad();
  }
}

TEST_CASE("weights that were saved without a weight_dtype load into a module with one, and the reverse") {
  reel_test::Folder folder;
  manual_seed(seed);
  nn::GRU plain(5, 8), rounding(5, 8, {.weight_dtype = f16});
  std::string file = folder.file("weights.safetensors");
  Tensor x = randn({4, 2, 5}), expected = rounding(x).output;
  io::save(file, rounding);
  io::load_into(plain, file);
  CHECK(plain.nets[0].W_h.to_vector<float>() == rounding.nets[0].W_h.to_vector<float>());
  nn::GRU other(5, 8, {.weight_dtype = f16});
  io::save(file, plain);
  io::load_into(other, file);
  CHECK(other(x).output.to_vector<float>() == expected.to_vector<float>());
}

TEST_CASE("a weight_dtype that a recurrent module cannot have is refused") {
  CHECK_THAT(error_of<DTypeError>([] { nn::LSTM(2, 3, {.weight_dtype = f64}); }),
             contains("LSTMCell: weight_dtype is f64; it must be bf16 or f16, or be left out"));
  CHECK_THAT(error_of<DTypeError>([] { nn::GRUCell(2, 3, {.weight_dtype = i32}); }),
             contains("GRUCell: weight_dtype is i32; it must be bf16 or f16, or be left out"));
  CHECK_THAT(
      error_of<DTypeError>([] { nn::RNN(2, 3, {.dtype = f64, .weight_dtype = bf16}); }),
      contains("RNNCell: weight_dtype bf16 rounds weights of f32, not of f64; leave it out, or use weights of f32"));
  CHECK(!nn::RNNCell(2, 3, {.dtype = bf16, .weight_dtype = bf16}).weight_dtype);
  nn::LSTMCell cell(2, 3, {.weight_dtype = bf16});
  cell.to(f64);
  CHECK_THAT(error_of<DTypeError>([&] {
               cell(zeros({1, 2}, {.dtype = f64}), cell.initial_state(1));
             }),
             contains("LSTMCell: weight_dtype bf16 rounds weights of f32, not of f64"));
}
