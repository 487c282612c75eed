#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>
#include <optional>
#include <vector>

#include "catch.h"

using namespace reel;
using reel_test::contains;
using reel_test::error_of;

namespace {

nn::Linear doubling() {
  nn::Linear layer(1, 1, {.bias = false});
  layer.weight = full({1, 1}, 2.0);
  return layer;
}

}  // namespace

TEST_CASE("hooks see what goes into a module and what comes out, and may replace both") {
  nn::Linear layer = doubling();
  std::vector<double> seen;
  auto first = layer.before_forward([&](std::span<Tensor> inputs) {
    seen.push_back(inputs[0].item());
    inputs[0] = inputs[0] + 1;
  });
  {
    auto second = layer.after_forward([&](std::span<Tensor> results) {
      seen.push_back(results[0].item());
      results[0] = results[0] * 10;
    });
    CHECK(layer(ones({1, 1})).item() == 40);
    CHECK(seen == std::vector<double>{1, 4});
  }
  CHECK(layer(ones({1, 1})).item() == 4);
  nn::Linear moved = std::move(layer);
  CHECK(moved(ones({1, 1})).item() == 4);
  first.remove();
  CHECK(moved(ones({1, 1})).item() == 2);
}

TEST_CASE("hooks see the gradients of a module's results and inputs, and may replace both") {
  nn::Linear layer = doubling();
  Tensor x = full({1, 1}, 3.0).requires_grad();
  std::vector<double> seen;
  auto before = layer.before_backward([&](std::span<Tensor> gradients) {
    seen.push_back(gradients[0].item());
    gradients[0] = gradients[0] * 5;
  });
  auto after = layer.after_backward([&](std::span<Tensor> gradients) {
    seen.push_back(gradients[0].item());
    gradients[0] = gradients[0] + 1;
  });
  Tape tape;
  // What flows past the module is not what flows through it.
  auto [dx, dw] = tape.gradient(sum(layer(x) * 7 + x), x, layer.weight);
  CHECK(seen == std::vector<double>{7, 70});
  CHECK(dx.item() == 72);
  CHECK(dw.item() == 7 * 5 * 3);
}

TEST_CASE("a gradient hook sees each call, from the last to the first, and only while it lives") {
  nn::Linear layer = doubling();
  Tensor x = ones({1, 1}).requires_grad();
  std::vector<double> seen;
  Tape tape({.persistent = true});
  std::optional<nn::ModuleHook> hook =
      layer.before_backward([&](std::span<Tensor> gradients) { seen.push_back(gradients[0].item()); });
  Tensor y = sum(layer(layer(x)));
  tape.gradient(y, x);
  CHECK(seen == std::vector<double>{1, 2});
  hook.reset();
  tape.gradient(y, x);
  CHECK(seen.size() == 2);
}

TEST_CASE("hooks of a cell see its states, and an input that is not given is undefined") {
  nn::LSTMCell cell(2, 3);
  std::size_t inputs = 0, results = 0, gradients = 0;
  auto before = cell.before_forward([&](std::span<Tensor> tensors) { inputs = tensors.size(); });
  auto after = cell.after_forward([&](std::span<Tensor> tensors) { results = tensors.size(); });
  auto backward = cell.after_backward([&](std::span<Tensor> tensors) {
    for (const Tensor& gradient : tensors) gradients += gradient.defined();
  });
  Tensor x = ones({4, 2}).requires_grad();
  Tape tape;
  tape.backward(sum(cell(x, cell.initial_state(4)).h));
  CHECK(inputs == 3);
  CHECK(results == 2);
  CHECK(gradients == 1);
}

TEST_CASE("a module counts the operations of its last call, and a struct without one of its own those of its parts") {
  struct Model : nn::Module {
    nn::Linear first{*this, "first", 4, 8};
    nn::Linear second{*this, "second", 8, 2};
    Tensor operator()(const Arg& x) const { return second(relu(first(x))); }
  };
  Model model;
  CHECK(model.last_flops() == 0);
  model(ones({3, 4}));
  CHECK(model.first.last_flops() == 2 * 3 * 4 * 8);
  CHECK(model.last_flops() == 2 * 3 * (4 * 8 + 8 * 2));
  Tape tape;
  tape.backward(sum(model(ones({1, 4}))));
  CHECK(model.last_flops() == 2 * (4 * 8 + 8 * 2));
}

TEST_CASE("a user's struct runs through call, which names the caller's line") {
  struct Model : nn::Module {
    nn::Linear layer{*this, "layer", 4, 2};
    Tensor operator()(const Arg& x) const {
      return call("Model", x, [&](const Tensor& x) { return layer(x) * 2; });
    }
  };
  Model model;
  auto hook = model.after_forward([](std::span<Tensor> results) { results[0] = results[0] * 0; });
  CHECK(sum(model(ones({1, 4}))).item() == 0);
  int line = __LINE__ + 1;
  CHECK_THAT(error_of<ShapeError>([&] { model(ones({1, 3})); }), contains(to_string(Location{__FILE__, line})));
  CHECK_THAT(error_of<Error>([&] { model(Tensor()); }), contains("Model"));
}
