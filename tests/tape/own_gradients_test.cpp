#include <reel/reel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "catch.h"
#include "core/storage.h"

// Every returned gradient is dense and shares its elements with no other tensor.

using namespace reel;

namespace {

using Doubles = std::vector<double>;
using Tensors = std::vector<Tensor>;

Tensor vector(std::initializer_list<double> values) { return tensor(values); }
Tensor scalar(double value) { return full({}, value, {.dtype = f64}); }
Doubles values(const Tensor& x) { return x.to_vector<double>(); }

// In row-major order without gaps, and neither its handle nor its elements have another owner: no second gradient, seed,
// input or saved value, and no tape.
bool is_own(const Tensor& gradient) {
  const detail::Body& body = gradient.body();
  return body.contiguous && body.references.unique() && body.storage->references.unique();
}

bool are_own(const Tensors& gradients) { return std::ranges::all_of(gradients, is_own); }

// Overwrites gradients, as clipping or scaling does.
template <class Gradients>
void halve(Gradients& gradients) {
  for (Tensor& gradient : gradients) gradient *= 0.5;
}

}  // namespace

TEST_CASE("gradients that are equal can be changed in place one by one while an outer tape records") {
  Tensor b1 = scalar(1), b2 = scalar(2);
  Tape outer;
  outer.watch(b1);
  outer.watch(b2);
  Tape inner;
  Tensors grads = inner.gradient((b1 + b2) * 4.0, {b1, b2});
  CHECK(are_own(grads));
  halve(grads);
  CHECK(grads[0].item() == 2);
  CHECK(grads[1].item() == 2);
}

TEST_CASE("a gradient in nested tapes shares nothing with the seed") {
  Tensor b1 = vector({1, 2}), b2 = vector({3, 4}), seed = vector({2, 2});
  Tape outer;
  outer.watch(b1);
  outer.watch(b2);
  {
    Tape inner;
    Tensors grads = inner.gradient(b1 + b2, {b1, b2}, {.seed = seed});
    CHECK(are_own(grads));
    halve(grads);
    for (const Tensor& gradient : grads) CHECK(values(gradient) == Doubles{1, 1});
    CHECK(values(seed) == Doubles{2, 2});
  }
  auto [value, products] = vjp([](const Tensor& x, const Tensor& y) { return x + y; }, {b1, b2}, seed);
  for (const Tensor& product : products) CHECK(is_own(product));
  halve(products);
  for (const Tensor& product : products) CHECK(values(product) == Doubles{1, 1});
  CHECK(values(seed) == Doubles{2, 2});
}

TEST_CASE("the gradient of a sum is dense in nested tapes, and each element can be changed") {
  Tensor x = vector({1, 2, 3});
  Tape outer;
  outer.watch(x);
  Tape inner;
  Tensor gradient = inner.gradient(sum(x), x);
  CHECK(is_own(gradient));
  gradient(1) *= 5;
  CHECK(values(gradient) == Doubles{1, 5, 1});
}

TEST_CASE("a gradient that an op hands through from a saved value leaves that value alone") {
  Tensor a = vector({1, 2}), b = vector({3, 4});
  auto times = [](const Tensor& x, const Tensor& y) {
    return custom_gradient([](const Tensor& x, const Tensor& y) { return sum(x * y); },
                           [](const Tensor&, const Tensor& x, const Tensor& y) {
                             return std::array{y, x};
                           },
                           x, y);
  };
  for (bool nested : {false, true}) {
    CAPTURE(nested);
    Tape outer;
    outer.watch(a);
    outer.watch(b);
    auto check = [&](Tape& tape) {
      Tensors grads = tape.gradient(times(a, b), {a, b});
      CHECK(are_own(grads));
      halve(grads);
      CHECK(values(grads[0]) == Doubles{1.5, 2});
      CHECK(values(grads[1]) == Doubles{0.5, 1});
      CHECK(values(a) == Doubles{1, 2});
      CHECK(values(b) == Doubles{3, 4});
    };
    if (!nested) {
      check(outer);
      continue;
    }
    Tape inner;
    check(inner);
  }
}

// L(w₁, w₂) = (w₁ + w₂ − t)² / 2 with g = w₁ + w₂ − t for both. A step w' = w − r c g with a clipping factor c, which is no
// function of w here, and M = (w₁' + w₂')² / 2: with s = w₁ + w₂, s' = s − 2 r c (s − t) and ∂M/∂w = s' (1 − 2 r c).
TEST_CASE("clipping in place in an inner step gives the meta-gradient of its closed form") {
  double rate = 0.25, factor = 0.5, target = 3;
  Tensor w1 = scalar(1.5), w2 = scalar(4), meta_gradient;
  Tape outer;
  outer.watch(w1);
  outer.watch(w2);
  double s = 5.5;
  Tensors fast{w1, w2};
  double slope = 1;
  for (int step = 0; step < 3; ++step) {
    Tape inner;
    Tensors grads = inner.gradient(square(fast[0] + fast[1] - target) / 2.0, fast);
    for (Tensor& gradient : grads) gradient *= factor;
    for (std::size_t i = 0; i < fast.size(); ++i) fast[i] = fast[i] - rate * grads[i];
    s -= 2 * rate * factor * (s - target);
    slope *= 1 - 2 * rate * factor;
  }
  Tensor loss = square(fast[0] + fast[1]) / 2.0;
  CHECK(loss.item() == Approx(s * s / 2));
  for (const Tensor& gradient : outer.gradient(loss, {w1, w2})) CHECK(gradient.item() == Approx(s * slope));
}

TEST_CASE("a copy of a shared gradient is differentiated to any order") {
  Tensor b1 = scalar(0.5), b2 = scalar(0.25);
  Tape first;
  first.watch(b1);
  first.watch(b2);
  Tensor second;
  {
    Tape inner;
    Tensor slope;
    {
      Tape innermost;
      Tensors grads = innermost.gradient(exp((b1 + b2) * 2.0), {b1, b2});
      CHECK(are_own(grads));
      slope = grads[0] * 3.0 + grads[1];
    }
    Tensors grads = inner.gradient(slope, {b1, b2});
    CHECK(are_own(grads));
    second = grads[0] + grads[1] * 5.0;
  }
  double e = std::exp(1.5);
  CHECK(second.item() == Approx(6 * 16 * e));
  for (const Tensor& third : first.gradient(second, {b1, b2})) CHECK(third.item() == Approx(6 * 32 * e));
}

TEST_CASE("every way to ask for derivatives gives tensors that have their elements to themselves") {
  bool nested = GENERATE(false, true);
  CAPTURE(nested);
  Tensor x = vector({1, 2}), y = vector({3, 4});
  std::optional<Tape> outer;
  if (nested) {
    outer.emplace();
    outer->watch(x);
    outer->watch(y);
  }
  auto f = [](const Tensor& x, const Tensor& y) { return x + y; };
  auto total = [](const Tensor& x, const Tensor& y) { return sum(x + y) + sum(x * x); };
  auto check = [](const auto& parts) {
    for (const Tensor& part : parts) CHECK(is_own(part));
  };
  check(jacobian(f, {x, y}));
  check(vjp(f, {x, y}, y).product);
  check(hvp(total, {x, y}, {y, x}).product);
  CHECK(is_own(jvp(f, {x, y}, {y, x}).product));
  for (const auto& row : hessian(total, {x, y})) check(row);
  CHECK(is_own(batch_jacobian([](const Tensor& x) { return x * 1.0; }, reshape(x, {2, 1}))));
  {
    Tape tape({.persistent = true});
    tape.watch(x);
    tape.watch(y);
    Tensor z = x + y;
    check(tape.gradient(sum(z), {x, y, z, x}));
    check(tape.gradient(z, {x, y, z, x}, {.seed = y}));
    check(tape.gradient(sum(x), {x, y}, {.unconnected = Unconnected::zeros}));
    check(tape.jacobian(z, {x, y, z, x}));
  }
}

TEST_CASE("a traced gradient keeps its values when the seed or what a hook returned is overwritten") {
  Tensor x = tensor({1., 2.}), seed = tensor({3., 4.}), given = tensor({5., 6.});
  Tape tape({.persistent = true});
  tape.watch(x);
  Tensor y = x * 2;
  tape.trace(y);
  tape.gradient(y, x, {.seed = seed});
  seed *= 10;
  CHECK(values(tape.traced()[0].gradient) == Doubles{3, 4});
  tape.hook(y, [&](const Tensor&) { return given; });
  tape.gradient(y, x, {.seed = seed});
  given *= 10;
  CHECK(values(tape.traced()[0].gradient) == Doubles{5, 6});
}

TEST_CASE("traced gradients share nothing with each other, with those of sources, or with what is asked later") {
  bool nested = GENERATE(false, true);
  CAPTURE(nested);
  Tensor x = vector({1, 2});
  Tape outer;
  outer.watch(x);
  std::optional<Tape> inner;
  if (nested) inner.emplace();
  Tape& tape = nested ? *inner : outer;
  Tensor h1 = x * 3.0, h2 = x * 5.0;
  tape.trace(h1);
  tape.trace(h2);
  Tensor seed = vector({2, 2});
  Tensors grads = tape.gradient(h1 + h2, {x, h1, h2}, {.seed = seed});
  CHECK(are_own(grads));
  std::vector<Traced> traced = tape.traced();
  REQUIRE(traced.size() == 2);
  for (Traced& trace : traced) {
    CHECK(is_own(trace.gradient));
    trace.gradient *= 0.5;
  }
  for (const Traced& trace : traced) CHECK(values(trace.gradient) == Doubles{1, 1});
  for (const Traced& trace : tape.traced()) CHECK(values(trace.gradient) == Doubles{2, 2});
  CHECK(values(grads[1]) == Doubles{2, 2});
  CHECK(values(seed) == Doubles{2, 2});
}

TEST_CASE("set_grad keeps a copy") {
  Tensor w = vector({1, 2}).requires_grad(), given = vector({2, 4}), wide = expand(scalar(3), {2});
  w.set_grad(given);
  CHECK(is_own(given));
  given *= 0.5;
  CHECK(values(w.grad()) == Doubles{2, 4});
  mul_(w.grad(), 0.25);  // the parameter's gradient itself, shared by all its handles
  CHECK(values(w.grad()) == Doubles{0.5, 1});
  CHECK(values(given) == Doubles{1, 2});
  w.set_grad(wide);
  CHECK(w.grad().is_contiguous());
  w.set_grad(w.grad());
  CHECK(values(w.grad()) == Doubles{3, 3});
  Tape tape;
  tape.watch(given);
  w.set_grad(given * 2.0);
  CHECK(values(w.grad()) == Doubles{2, 4});
}

TEST_CASE("parameters that get one gradient have each its own after a backward") {
  bool nested = GENERATE(false, true);
  CAPTURE(nested);
  Tensor a = vector({1, 2}).requires_grad(), b = vector({3, 4}).requires_grad(), seed = vector({2, 2});
  std::optional<Tape> outer;
  if (nested) outer.emplace();
  Tape tape;
  tape.backward(a + b, {.seed = seed});
  mul_(a.grad(), 0.5);
  CHECK(values(a.grad()) == Doubles{1, 1});
  CHECK(values(b.grad()) == Doubles{2, 2});
  CHECK(values(seed) == Doubles{2, 2});
}

TEST_CASE("gradients that hooks keep share nothing with each other or with what is handed out") {
  bool nested = GENERATE(false, true);
  CAPTURE(nested);
  Tensor x = vector({1, 2}), y = vector({3, 4});
  Tape outer;
  outer.watch(x);
  outer.watch(y);
  std::optional<Tape> inner;
  if (nested) inner.emplace();
  Tape& tape = nested ? *inner : outer;
  Tensor h1 = x + y, h2 = h1 + x, seed = vector({2, 2});
  Tensors kept;
  for (const Tensor& hooked : {h1, h2, x, y})
    tape.hook(hooked, [&](const Tensor& gradient) { kept.push_back(gradient); });
  tape.hook_op("add", [&](const OpGradients& gradients) {
    for (const Tensor& gradient : gradients.outputs) kept.push_back(gradient);
    for (const Tensor& gradient : gradients.inputs) kept.push_back(gradient);
  });
  Tensors grads = tape.gradient(h2 + y, {x, y, h1}, {.seed = seed});
  CHECK(kept.size() == 4 + 3 * 3);
  CHECK(are_own(kept));
  CHECK(are_own(grads));
  halve(kept);
  CHECK(values(grads[0]) == Doubles{4, 4});
  CHECK(values(grads[1]) == Doubles{4, 4});
  CHECK(values(grads[2]) == Doubles{2, 2});
  CHECK(values(seed) == Doubles{2, 2});
}

TEST_CASE("a custom gradient and a module's hooks may change the gradients that they are given") {
  bool nested = GENERATE(false, true);
  CAPTURE(nested);
  Tensor x = vector({1, 2}), y = vector({3, 4}), seed = vector({2, 2});
  Tape outer;
  outer.watch(x);
  outer.watch(y);
  std::optional<Tape> inner;
  if (nested) inner.emplace();
  Tape& tape = nested ? *inner : outer;
  auto halved = [](const Tensor& x) {
    return custom_gradient([](const Tensor& x) { return x; },
                           [](const Tensor& dy) {
                             Tensor dx = dy;
                             dx *= 0.5;
                             return dx;
                           },
                           x);
  };
  nn::Sequential module([](const Tensor& x) { return x * 1.0; });
  Tensors kept;
  nn::ModuleHook hook = module.before_backward([&](std::span<Tensor> gradients) {
    gradients[0] *= 0.25;
    kept.push_back(gradients[0]);
  });
  Tensors grads = tape.gradient(halved(x) + module(x) + y, {x, y}, {.seed = seed});
  CHECK(values(grads[0]) == Doubles{1.5, 1.5});
  CHECK(values(grads[1]) == Doubles{2, 2});
  CHECK(values(seed) == Doubles{2, 2});
  CHECK(are_own(grads));
  CHECK(are_own(kept));
}

TEST_CASE("a checkpoint's gradients have their elements to themselves") {
  Tensor x = vector({1, 2}), y = vector({3, 4});
  Tape outer;
  outer.watch(x);
  outer.watch(y);
  Tape inner;
  Tensor z = checkpoint([](const Tensor& x, const Tensor& y) { return sum(x + y); }, x, y);
  Tensors grads = inner.gradient(z, {x, y});
  CHECK(are_own(grads));
  halve(grads);
  for (const Tensor& gradient : grads) CHECK(values(gradient) == Doubles{0.5, 0.5});
}

TEST_CASE("a gradient that nobody shares is handed out without a copy") {
  Tensor x = vector({1, 2}), y = vector({3, 4});
  Tape outer;
  outer.watch(x);
  outer.watch(y);
  Tape inner;
  Tensor z = sum(x * y);
  int copies = 0;
  Tensors grads;
  {
    debug::Listen count([&](const debug::OpEvent& event) { copies += std::string_view(event.op) == "copy"; });
    grads = inner.gradient(z, {x, y});
  }
  CHECK(copies == 0);
  CHECK(are_own(grads));
}
