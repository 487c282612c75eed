#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>
#include <atomic>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "catch.h"
#include "printed_to_stderr.h"

using namespace reel;
using namespace reel_test;

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
  // Gradients that bypass the module are not passed to its hooks.
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

TEST_CASE("a hook keeps its state from call to call and from backward to backward") {
  nn::Linear layer = doubling();
  Tensor x = ones({1, 1}).requires_grad();
  std::vector<int> counted[4];
  auto counter = [](std::vector<int>& counts) {
    return [&counts, count = 0](std::span<Tensor>) mutable { counts.push_back(++count); };
  };
  auto a = layer.before_forward(counter(counted[0])), b = layer.after_forward(counter(counted[1]));
  auto c = layer.before_backward(counter(counted[2])), d = layer.after_backward(counter(counted[3]));
  for (int step = 0; step < 3; ++step) {
    Tape tape;
    tape.backward(sum(layer(x)));
  }
  for (const std::vector<int>& counts : counted) CHECK(counts == std::vector<int>{1, 2, 3});
}

TEST_CASE("a hook may remove itself and others, and add hooks, while it runs") {
  nn::Linear layer = doubling();
  std::vector<std::string> ran;
  std::vector<nn::ModuleHook> hooks;
  std::optional<nn::ModuleHook> itself, later;
  itself = layer.before_forward([&, name = std::string("itself")](std::span<Tensor>) {
    itself.reset();
    later.reset();
    hooks.push_back(layer.before_forward([&](std::span<Tensor>) { ran.emplace_back("added"); }));
    ran.push_back(name);  // its captures live until it returns
  });
  later = layer.before_forward([&](std::span<Tensor>) { ran.emplace_back("removed"); });
  layer(ones({1, 1}));
  CHECK(ran == std::vector<std::string>{"itself"});
  layer(ones({1, 1}));
  CHECK(ran == std::vector<std::string>{"itself", "added"});
}

TEST_CASE("an exception of a hook goes to the caller, and the module and its hooks go on") {
  nn::Linear layer = doubling();
  Tensor x = ones({1, 1}).requires_grad();
  auto throwing = [](int when, int& count) {
    return [when, &count](std::span<Tensor>) {
      if (++count == when) throw std::runtime_error("the hook's");
    };
  };
  int counts[4] = {};
  auto a = layer.before_forward(throwing(1, counts[0])), b = layer.after_forward(throwing(2, counts[1]));
  auto c = layer.before_backward(throwing(1, counts[2])), d = layer.after_backward(throwing(2, counts[3]));
  auto step = [&] {
    Tape tape;
    tape.backward(sum(layer(x)));
  };
  CHECK_THROWS_AS(step(), std::runtime_error);  // before the call
  CHECK_NOTHROW([&] {
    Tape tape;
    layer(x);
  }());
  CHECK_THROWS_AS(step(), std::runtime_error);  // after the call
  CHECK_THROWS_AS(step(), std::runtime_error);  // before the backward
  CHECK_FALSE(x.grad().defined());
  CHECK_NOTHROW(step());
  CHECK_THROWS_AS(step(), std::runtime_error);  // after the backward
  CHECK(x.grad().item() == 2);
  CHECK(layer.weight.grad().item() == 1);
  CHECK_NOTHROW(step());
}

TEST_CASE("hooks of a module that calls itself see each call, the innermost results first") {
  struct Tree : nn::Module {
    nn::Linear join{*this, "join", 1, 1, {.bias = false, .initialiser = nn::constant(1)}};
    Tensor operator()(const Arg& x) const {
      return call("Tree", x, [&](const Tensor& x) {
        if (x.numel() == 1) return join(x);
        std::int64_t half = x.size(0) / 2;
        Tensor left = (*this)(slice(x, 0, 0, half));
        return left + (*this)(slice(x, 0, half));
      });
    }
  };
  Tree tree;
  std::vector<std::int64_t> sizes;
  std::vector<double> results, gradients;
  auto before = tree.before_forward([&](std::span<Tensor> x) { sizes.push_back(x[0].size(0)); });
  auto after = tree.after_forward([&](std::span<Tensor> y) { results.push_back(sum(y[0]).item()); });
  auto backward =
      tree.before_backward([&, depth = 0](std::span<Tensor> g) mutable { gradients.push_back(g[0].item() + ++depth); });
  Tape tape;
  tape.backward(sum(tree(tensor({{1.0f}, {2.0f}, {4.0f}}))));
  CHECK(sizes == std::vector<std::int64_t>{3, 1, 2, 1, 1});
  CHECK(results == std::vector<double>{1, 2, 4, 6, 7});
  CHECK(gradients == std::vector<double>{2, 3, 4, 5, 6});
}

TEST_CASE("threads may call one module while hooks are added and removed") {
  nn::Linear layer = doubling();
  std::atomic<int> always = 0, sometimes = 0;
  auto hook = layer.before_forward([&](std::span<Tensor>) { ++always; });
  layer(ones({1, 1}));
  constexpr int threads = 3, calls = 200;
  std::vector<std::jthread> callers;
  for (int i = 0; i < threads; ++i)
    callers.emplace_back([&] {
      for (int k = 0; k < calls; ++k) layer(ones({1, 1}));
    });
  for (int k = 0; k < 50; ++k) auto passing = layer.after_forward([&](std::span<Tensor>) { ++sometimes; });
  callers.clear();
  CHECK(always == 1 + threads * calls);
}

TEST_CASE("hooks on gradients of inputs fire where no input asks for one, with undefined tensors") {
  nn::Linear layer = doubling();
  std::vector<bool> defined;
  std::size_t of_results = 0;
  auto inputs = layer.after_backward([&](std::span<Tensor> gradients) {
    for (const Tensor& gradient : gradients) defined.push_back(gradient.defined());
  });
  auto step = [&] {
    Tape tape;
    tape.backward(sum(layer(ones({1, 1}))));
  };
  step();
  CHECK(defined == std::vector<bool>{false});
  auto results = layer.before_backward([&](std::span<Tensor>) { of_results = defined.size() + 10; });
  step();
  CHECK(of_results == 11);  // runs before the inputs' hook
  CHECK(defined.size() == 2);
}

TEST_CASE("a hook of a struct whose operator() does not run through call is an error where its parts run") {
  struct Model : nn::Module {
    nn::Sequential net{*this, "net", nn::Linear(4, 2), relu};
    Tensor operator()(const Arg& x) const { return net(x); }
  };
  Model model;
  int hook_line = __LINE__ + 1;
  auto hook = model.after_forward([](std::span<Tensor>) {});
  std::string text = error_of<Error>([&] { model(ones({1, 4})); });
  CHECK_THAT(text, contains("hook of Model"));
  CHECK_THAT(text, contains("call("));
  CHECK_THAT(text, contains(to_string(Location{__FILE__, hook_line})));
  hook.remove();
  CHECK_NOTHROW(model(ones({1, 4})));
}

TEST_CASE("a part may be called by itself once the module around it has been called") {
  struct Model : nn::Module {
    nn::Linear layer{*this, "layer", 1, 1};
    Tensor operator()(const Arg& x) const {
      return call("Model", x, [&](const Tensor& x) { return layer(x); });
    }
  } model;
  int seen = 0;
  auto hook = model.before_forward([&](std::span<Tensor>) { ++seen; });
  model(ones({1, 1}));
  model.layer(ones({1, 1}));
  CHECK(seen == 1);
}

TEST_CASE("a hook of a struct with parameters only that does not run through call is reported when it goes") {
  struct Scale : nn::Module {
    nn::Parameter factor{*this, "factor", {1}, nn::constant(2)};
    Tensor operator()(const Arg& x) const { return factor * x; }
  } scale;
  int line = 0;
  std::string printed = printed_to_stderr([&] {
    line = __LINE__ + 1;
    auto hook = scale.after_forward([](std::span<Tensor>) {});
    scale(ones({1}));
  });
  CHECK_THAT(printed, contains("reel: warning: a hook of Scale"));
  CHECK_THAT(printed, contains(to_string(Location{__FILE__, line})));
  CHECK(printed_to_stderr([] {
          nn::Linear layer = doubling();
          auto hook = layer.before_backward([](std::span<Tensor>) {});
          layer(ones({1, 1}));
        }).empty());
}

TEST_CASE("modules that only hold others refuse hooks, and so does every module an empty function") {
  nn::ModuleList<nn::Linear> list;
  nn::ModuleDict<nn::Linear> dictionary;
  CHECK_THAT(error_of<Error>([&] { static_cast<void>(list.before_forward([](std::span<Tensor>) {})); }),
             contains("ModuleList<Linear> is never called"));
  CHECK_THAT(error_of<Error>([&] { static_cast<void>(dictionary.after_backward([](std::span<Tensor>) {})); }),
             contains("ModuleDict<Linear> is never called"));
  nn::Linear layer = doubling();
  CHECK_THAT(error_of<Error>([&] { static_cast<void>(layer.after_forward({})); }), contains("empty function"));
}

TEST_CASE("hooks go with what a module holds when it moves, and a clone has none") {
  nn::Linear layer = doubling(), other(1, 1);
  int seen = 0;
  auto hook = layer.before_forward([&, own = 0](std::span<Tensor>) mutable { seen = ++own; });
  layer(ones({1, 1}));
  nn::clone(layer)(ones({1, 1}));
  CHECK(seen == 1);
  swap(layer, other);
  layer(ones({1, 1}));
  CHECK(seen == 1);
  other(ones({1, 1}));
  CHECK(seen == 2);
}
