#include <reel/batching.h>
#include <reel/checkpoint.h>
#include <reel/debug/gradcheck.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "catch.h"
#include "checks.h"
#include "overlap.h"

using namespace reel;
using namespace reel_test;

namespace {

struct Net : nn::Module {
  nn::Linear hidden{*this, "hidden", 2, 3, {.dtype = f64}};
  nn::Linear output{*this, "output", 3, 1, {.dtype = f64}};

  using Module::Module;
  Tensor operator()(const Arg& x) const {
    return call("Net", x, [&](const Tensor& x) { return output(tanh(hidden(x))); });
  }
};

Tensor number(double value) { return full({}, value, {.dtype = f64}); }

std::vector<NamedTensor> named(const nn::Module& module, std::span<const Tensor> values) {
  std::vector<NamedTensor> list = module.named_parameters();
  for (std::size_t i = 0; i < list.size(); ++i) list[i].tensor = values[i];
  return list;
}

Tensor composed(std::span<const Tensor> w, const Tensor& x) {
  return matmul(tanh(matmul(x, w[0]) + w[1]), w[2]) + w[3];
}

std::vector<Tensor> draw_weights() { return {draw({2, 3}), draw({3}), draw({3, 1}), draw({1})}; }

double difference(const Tensor& a, const Tensor& b) { return max(abs(a - b)).item(); }

// w − ∂ mean((net(x) − y)²) / ∂w, by a tape of its own.
template <class F>
std::vector<Tensor> stepped(F net, std::span<const Tensor> w, const Tensor& x, const Tensor& y) {
  Tape inner;
  for (const Tensor& one : w) inner.watch(one);
  Tensor loss = mean(square(net(w, x) - y));
  std::vector<Tensor> gradients = inner.gradient(loss, w), next;
  for (std::size_t i = 0; i < w.size(); ++i) next.push_back(w[i] - 0.1 * gradients[i]);
  return next;
}

}  // namespace

TEST_CASE("a module computes with the tensors that replace its parameters, and has its own again afterwards") {
  manual_seed(1);
  Net net;
  Tensor x = draw({4, 2}), before = net(x);
  std::vector<Tensor> weights = draw_weights(), own = net.parameters();
  CHECK(difference(nn::functional_call(net, named(net, weights), x), composed(weights, x)) < 1e-12);
  for (std::size_t i = 0; i < own.size(); ++i) CHECK(net.parameters()[i].is(own[i]));
  CHECK(difference(net(x), before) == 0);

  // Only some of them, in any order.
  std::vector<NamedTensor> some{{"output.bias", weights[3]}, {"hidden.weight", weights[0]}};
  some[1].name = net.named_parameters()[0].name;
  std::vector<Tensor> mixed{weights[0], own[1], own[2], weights[3]};
  CHECK(difference(nn::functional_call(net, some, x), composed(mixed, x)) < 1e-12);
  CHECK(difference(nn::functional_call(net, std::vector<NamedTensor>(), x), before) == 0);
}

TEST_CASE("the parameters come back after an exception, and after nested calls") {
  manual_seed(2);
  Net net;
  Tensor x = draw({4, 2}), before = net(x);
  std::vector<Tensor> outer = draw_weights(), inner = draw_weights();
  CHECK_THROWS_AS(nn::functional_call(net, named(net, outer), draw({4, 5})), ShapeError);
  CHECK(difference(net(x), before) == 0);
  {
    std::vector<NamedTensor> list = named(net, outer);
    nn::ReplacedParameters scope(net, list);
    CHECK(net.parameters()[0].is(outer[0]));
    CHECK(difference(nn::functional_call(net, named(net, inner), x), composed(inner, x)) < 1e-12);
    CHECK(difference(net(x), composed(outer, x)) < 1e-12);
  }
  CHECK(difference(net(x), before) == 0);
}

TEST_CASE("a result is differentiated by the tensors that replace parameters, to second order") {
  manual_seed(3);
  Net net;
  std::vector<Tensor> inputs = draw_weights();
  inputs.push_back(draw({3, 2}));
  auto f = [&](std::span<const Tensor> in) { return nn::functional_call(net, named(net, in.first(4)), in[4]); };
  CHECK(debug::gradcheck(f, inputs));
  CHECK(debug::gradgradcheck(f, inputs));
  Tape tape;
  for (const Tensor& w : net.parameters()) CHECK(w.is_parameter());
  for (const Tensor& input : inputs) tape.watch(input);
  Tensor loss = sum(f(inputs));
  CHECK_THROWS_AS(tape.gradient(loss, net.parameters()), TapeError);  // it does not depend on the module's own
}

TEST_CASE("a tape differentiates by named tensors in their order") {
  manual_seed(5);
  Net net;
  Tensor x = draw({3, 2});
  Tape tape({.persistent = true});
  Tensor loss = sum(square(net(x)));
  std::vector<NamedTensor> weights = net.named_parameters();
  std::vector<Tensor> by_name = tape.gradient(loss, weights), expected = tape.gradient(loss, net.parameters());
  REQUIRE(by_name.size() == weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) CHECK(difference(by_name[i], expected[i]) == 0);
  CHECK(tape.gradient(loss, std::vector<NamedTensor>()).empty());

  weights.push_back({"other", randn({2}).requires_grad()});
  CHECK_THROWS_AS(tape.gradient(loss, weights), TapeError);
  std::vector<Tensor> zeros = tape.gradient(loss, weights, {.unconnected = Unconnected::zeros});
  CHECK(difference(zeros.back(), reel::zeros({2})) == 0);
}

TEST_CASE("a loss after a step of learning has the gradients of the composed step and of differences") {
  manual_seed(4);
  Net net;
  Tensor x = draw({5, 2}), y = draw({5, 1}), other_x = draw({3, 2}), other_y = draw({3, 1});
  auto called = [&](std::span<const Tensor> w, const Tensor& x) { return nn::functional_call(net, named(net, w), x); };
  auto after = [&](auto model) {
    return [=, &x, &y, &other_x, &other_y](std::span<const Tensor> w) {
      std::vector<Tensor> next = stepped(model, w, x, y), last = stepped(model, next, x, y);
      return mean(square(model(last, other_x) - other_y));
    };
  };
  std::vector<Tensor> weights = draw_weights();
  CHECK(debug::gradcheck(after(called), weights));
  auto gradients = [&](auto f) {
    Tape tape;
    for (const Tensor& w : weights) tape.watch(w);
    return tape.gradient(f(weights), weights);
  };
  std::vector<Tensor> found = gradients(after(called)), expected = gradients(after(composed));
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(difference(found[i], expected[i]) < 1e-12);
}

TEST_CASE("the module's own parameters get the gradient of a loss after a step that starts with them") {
  manual_seed(5);
  Net net;
  Tensor x = draw({5, 2}), y = draw({5, 1});
  auto loss_after_step = [&] {
    std::vector<Tensor> fast = net.parameters();
    Tape inner;
    Tensor loss = mean(square(nn::functional_call(net, named(net, fast), x) - y));
    std::vector<Tensor> gradients = inner.gradient(loss, fast);
    for (std::size_t i = 0; i < fast.size(); ++i) fast[i] = fast[i] - 0.1 * gradients[i];
    return mean(square(nn::functional_call(net, named(net, fast), x) - y));
  };
  {
    Tape tape;
    tape.backward(loss_after_step());
  }
  for (const Tensor& w : net.parameters()) {
    REQUIRE(w.grad().defined());
    // Against a difference along the gradient.
    Tensor direction = copy(w.grad());
    auto shifted = [&](double step) {
      NoRecord pause;
      Tensor kept = copy(stop_gradient(w)), target = w;
      copy_(target, kept + step * direction);
      double value = loss_after_step().item();
      copy_(target, kept);
      return value;
    };
    double slope = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
    CHECK(slope == Approx(sum(square(direction)).item()).epsilon(1e-6));
  }
}

TEST_CASE("a tied parameter is replaced under all its names, and buffers are replaced too") {
  manual_seed(6);
  struct Tied : nn::Module {
    nn::Parameter first{*this, "first", {2}, nn::constant(1), {.dtype = f64}};
    nn::Parameter second{*this, "second", first};
    nn::Buffer scale{*this, "scale", ones({2}, {.dtype = f64})};
    Tensor operator()(const Tensor& x) const { return scale * (x * first + second); }
  } tied;
  Tensor x = tensor({2.0, 3.0}), w = tensor({5.0, 7.0}), scale = tensor({1.0, 10.0});
  for (const char* name : {"first", "second"})
    CHECK(nn::functional_call(tied, std::vector<NamedTensor>{{name, w}, {"scale", scale}}, x).to_vector<double>() ==
          std::vector<double>{15, 280});
  CHECK(nn::functional_call(tied, std::vector<NamedTensor>{{"first", w}, {"second", w}}, x).to_vector<double>() ==
        std::vector<double>{15, 28});
  CHECK_THAT(
      error_of<Error>([&] {
        nn::functional_call(tied, std::vector<NamedTensor>{{"first", w}, {"second", x}}, x);
      }),
      contains("functional_call: two tensors are given for the parameter 'second', one of them under another name"));
  CHECK(tied.first.to_vector<double>() == std::vector<double>{1, 1});
}

TEST_CASE("parts are found by their whole names, at any depth and in any order") {
  struct Leaf : nn::Module {
    nn::Parameter weight{*this, "weight", {}, nn::constant(1), {.dtype = f64}};
    nn::Buffer scale{*this, "scale", ones({}, {.dtype = f64})};
    nn::Parameter bias{*this, "bias"};  // undefined
  };
  struct Tree : nn::Module {
    nn::ModuleList<Leaf> leaves{*this, "leaves"};
    Leaf root;
    Tree() {
      for (int i = 0; i < 12; ++i) leaves.push_back(Leaf());
      root.weight = leaves[11].weight;
      root.join(*this, "weight");
    }
    Tensor operator()() const {
      Tensor sum = root.weight * 1000;
      for (std::size_t i = 0; i < leaves.size(); ++i) sum = sum + leaves[i].weight * leaves[i].scale;
      return sum;
    }
  } tree;
  std::vector<NamedTensor> list{{"leaves.11.weight", number(3)},
                                {"leaves.1.scale", number(5)},
                                {"leaves.1.weight", number(7)},
                                {"leaves.0.weight", number(11)}};
  double expected = 3000 + 9 + 35 + 11 + 3;
  std::ranges::sort(list, {}, &NamedTensor::name);
  do {
    CAPTURE(list[0].name, list[1].name, list[2].name);
    nn::ReplacedParameters scope(tree, list);
    CHECK(tree().item() == expected);
  } while (std::ranges::next_permutation(list, {}, &NamedTensor::name).found);
  CHECK(tree().item() == 1012);
  // Under the name of the part that shares the tensor.
  list = {{"weight.weight", number(3)}};
  CHECK(nn::functional_call(tree, list).item() == 3000 + 11 + 3);
  for (const char* name :
       {"", ".", "weight", "leaves", "leaves.11", "leaves.12.weight", "leaves.1.bias", "leaves.1.", "eaves.1.weight",
        ".leaves.1.weight", "leaves..1.weight", "leaves.1.weight.", "leaves.1.weight.weight"})
    CHECK_THAT(error_of<Error>([&] {
                 nn::functional_call(tree, std::vector<NamedTensor>{{"leaves.0.weight", number(2)}, {name, number(2)}});
               }),
               contains("Tree has no parameter or buffer '" + std::string(name) + "';"));
  CHECK(tree().item() == 1012);
}

TEST_CASE("examples of batch_map each compute with tensors of their own") {
  manual_seed(7);
  Net net;
  std::vector<std::vector<Tensor>> weights{draw_weights(), draw_weights(), draw_weights()};
  Tensor x = draw({4, 2}), before = net(x);
  std::vector<Tensor> found = batch_map(weights, [&](const std::vector<Tensor>& w) {
    Tensor alone = net(x * 1.0);
    Tensor own = nn::functional_call(net, named(net, w), tanh(x));
    return concat({own, net(x * 1.0) + alone});
  });
  for (std::size_t i = 0; i < weights.size(); ++i) {
    CHECK(difference(slice(found[i], 0, 0, 4), composed(weights[i], tanh(x))) < 1e-12);
    CHECK(difference(slice(found[i], 0, 4, 8), 2 * before) < 1e-12);
  }
  // Examples within a scope share the replaced parameters.
  std::vector<Tensor> rows{draw({1, 2}), draw({1, 2})};
  std::vector<NamedTensor> list = named(net, weights[0]);
  nn::ReplacedParameters scope(net, list);
  std::vector<Tensor> shared = batch_map(rows, [&](const Tensor& row) { return net(row); });
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK(difference(shared[i], composed(weights[0], rows[i])) < 1e-12);
}

TEST_CASE("threads compute with tensors of their own while others are within calls of the module") {
  manual_seed(8);
  Net net;
  Tensor x = draw({4, 2});
  std::vector<Tensor> first = draw_weights(), second = draw_weights();
  std::vector<double> own = net(x).to_vector<double>();
  Overlap overlap;
  auto hook = net.hidden.before_forward([&](std::span<Tensor>) { overlap.enter(); });
  auto is_right = [&](const std::vector<Tensor>& weights) {
    return nn::functional_call(net, named(net, weights), x).to_vector<double>() ==
           composed(weights, x).to_vector<double>();
  };
  CHECK(overlap.run([&] { return is_right(first); }, [&] { return is_right(second); }));
  CHECK(overlap.run([&] { return is_right(first); }, [&] { return net(x).to_vector<double>() == own; }));
}

TEST_CASE("the hooks, path and operations of a module are those of a call with other tensors") {
  struct Outer : nn::Module {
    Net net{*this, "net"};
    Tensor operator()(const Tensor& x, const std::vector<NamedTensor>& list) const {
      return nn::functional_call(net, list, x);
    }
  } outer;
  std::vector<Tensor> weights = draw_weights();
  std::vector<NamedTensor> list = named(outer.net, weights);
  std::vector<Tensor> seen;
  auto hook = outer.net.hidden.after_forward([&](std::span<Tensor> results) { seen.push_back(results[0]); });
  Tensor x = draw({4, 2});
  outer(x, list);
  REQUIRE(seen.size() == 1);
  CHECK(difference(seen[0], matmul(x, weights[0]) + weights[1]) < 1e-12);
  CHECK(outer.net.last_flops() == 2 * 4 * (2 * 3 + 3 * 1));
  CHECK_THAT(error_of<ShapeError>([&] { outer(draw({4, 5}), list); }), contains("in net.hidden"));
}

TEST_CASE("a checkpoint within a call with other tensors is differentiated by them") {
  manual_seed(9);
  struct Checkpointed : nn::Module {
    nn::Parameter w{*this, "w", {3, 3}, nn::uniform(-1, 1), {.dtype = f64}};
    Tensor operator()(const Tensor& x) const {
      return checkpoint([this](const Tensor& x) { return tanh(matmul(x, w)); }, x);
    }
  } model;
  Tensor x = draw({2, 3}), w = draw({3, 3});
  Tape tape({.persistent = true});
  tape.watch(w);
  Tensor found = sum(nn::functional_call(model, std::vector<NamedTensor>{{"w", w}}, x)),
         expected = sum(tanh(matmul(x, w)));
  CHECK(difference(tape.gradient(found, w), tape.gradient(expected, w)) < 1e-12);
}

TEST_CASE("modules that C++ does not copy compute with other tensors, too, and keep what a call changes") {
  Tensor x = draw({4, 2}), weight = draw({2, 3});
  Tensor expected = matmul(x, weight);
  auto check = [&](auto& model, const char* name) {
    CHECK(difference(nn::functional_call(model, std::vector<NamedTensor>{{name, weight}}, x), expected) < 1e-12);
    CHECK_FALSE(model.named_parameters()[0].tensor.is(weight));
  };
  const nn::LinearOptions options{.bias = false, .dtype = f64};
  struct Counting : nn::Module {
    nn::Linear layer{*this, "layer", 2, 3, {.bias = false, .dtype = f64}};
    int calls = 0;
    Tensor operator()(const Tensor& x) { return ++calls, layer(x); }
  } counting;
  check(counting, "layer.weight");
  CHECK(counting.calls == 1);

  struct Pointing : nn::Module {
    std::shared_ptr<nn::Linear> layer;
    explicit Pointing(nn::LinearOptions options) : layer(std::make_shared<nn::Linear>(2, 3, options)) {
      layer->join(*this, "layer");
    }
    Tensor operator()(const Tensor& x) const { return (*layer)(x); }
  } pointing(options);
  check(pointing, "layer.weight");

  struct Base : nn::Module {
    virtual Tensor operator()(const Tensor& x) const { return x; }
  };
  struct Derived : Base {
    nn::Linear layer{*this, "layer", 2, 3, {.bias = false, .dtype = f64}};
    Derived() = default;
    Derived(const Derived&) = delete;
    Tensor operator()(const Tensor& x) const override { return layer(x); }
  } derived;
  check(static_cast<Base&>(derived), "layer.weight");
  check(derived, "layer.weight");

  nn::Sequential sequential(nn::Linear(2, 3, options),
                            [only = std::make_unique<int>(1)](const Tensor& x) { return x * *only; });
  check(sequential, "0.weight");
}

// Its second part refers to the first one, as models with tied weights do.
struct Tied : nn::Module {
  nn::Linear first{*this, "first", 2, 2, {.dtype = f64}};
  const nn::Linear& again = first;

  Tensor operator()(const Arg& x) const { return tanh(matmul(tanh(first(x)), again.weight)); }
};

TEST_CASE("a replaced parameter that a copy of the module reaches through a reference is refused, not used") {
  Tied model;
  Tensor x = draw({1, 2});
  std::vector<NamedTensor> own = model.named_parameters(), other = own;
  for (NamedTensor& one : other) one.tensor = one.tensor * 2;
  CHECK_THAT(error_of<Error>([&] { nn::functional_call(model, other, x); }),
             contains("matmul: ") && contains("through a pointer or a reference") && contains("ReplacedParameters"));
  CHECK(difference(nn::functional_call(model, own, x), model(x)) == 0);  // each replaces itself
  Tensor expected = tanh(matmul(tanh(matmul(x, other[0].tensor) + other[1].tensor), other[0].tensor));
  nn::ReplacedParameters scope(model, other);
  CHECK(difference(model(x), expected) < 1e-12);
}

TEST_CASE("functional_call names what does not fit, and the caller's line") {
  Net net;
  Tensor x = draw({4, 2});
  std::string weight = net.named_parameters()[0].name;
  int line = __LINE__ + 1;
  CHECK(error_of<Error>([&] {
          nn::functional_call(net, std::vector<NamedTensor>{{"hidden.wait", x}}, x);
        }) ==
        "functional_call: Net has no parameter or buffer 'hidden.wait'; named_parameters() and named_buffers() list "
        "their names; at " +
            to_string(Location{__FILE__, line}));
  auto message = [&]<class E>(std::type_identity<E>, const Tensor& tensor) {
    return error_of<E>([&] { nn::functional_call(net, std::vector<NamedTensor>{{weight, tensor}}, x); });
  };
  CHECK_THAT(message(std::type_identity<ShapeError>(), draw({3, 2})),
             contains("the tensor for '" + weight + "' is (3, 2) f64, but the module has (2, 3) f64 there"));
  CHECK_THAT(message(std::type_identity<DTypeError>(), ones({2, 3})), contains("is (2, 3) f32, but"));
  CHECK_THAT(message(std::type_identity<Error>(), Tensor()), contains("the tensor for '" + weight + "' is undefined"));
  int call_line = __LINE__ + 1;
  CHECK_THAT(error_of<ShapeError>([&] {
               nn::functional_call(net, std::vector<NamedTensor>(), draw({4, 5}));
             }),
             contains("at " + to_string(Location{__FILE__, call_line})));
}
