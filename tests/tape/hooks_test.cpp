#include <reel/reel.h>

#include <stdexcept>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

using Doubles = std::vector<double>;

Tensor vector(std::initializer_list<double> values) { return tensor(values); }
Doubles values(const Tensor& x) { return x.to_vector<double>(); }

}  // namespace

TEST_CASE("a hook sees the whole gradient of a computed tensor, and may replace it") {
  Tensor x = vector({1, 2});
  Tape tape({.persistent = true});
  tape.watch(x);
  Tensor h = x * 3, y = sum(h * h) + sum(h * 5);
  std::vector<Doubles> seen;
  tape.hook(h, [&](const Tensor& gradient) { seen.push_back(values(gradient)); });
  CHECK(values(tape.gradient(y, x)) == Doubles{33, 51});
  CHECK(seen == std::vector<Doubles>{{11, 17}});
  tape.hook(h, [](const Tensor& gradient) { return gradient * 2; });
  tape.hook(h, [&](const Tensor& gradient) { seen.push_back(values(gradient)); });
  tape.hook(h, [](const Tensor&) { return Tensor{}; });
  CHECK(values(tape.gradient(y, x)) == Doubles{66, 102});
  CHECK(seen == std::vector<Doubles>{{11, 17}, {11, 17}, {22, 34}});
  // A hooked source has the replaced gradient, which is propagated.
  auto [gx, gh] = tape.gradient(y, x, h);
  CHECK(values(gx) == Doubles{66, 102});
  CHECK(values(gh) == Doubles{22, 34});
  CHECK(values(tape.gradient(y, h)) == Doubles{22, 34});
}

TEST_CASE("a hook on the target sees the seed, and one that the target does not depend on sees nothing") {
  Tensor x = vector({1, 2});
  Tape tape({.persistent = true});
  tape.watch(x);
  Tensor y = x * x, later = y * 2;
  int calls = 0;
  tape.hook(later, [&](const Tensor&) { ++calls; });
  tape.hook(y, [](const Tensor& seed) { return seed * 10; });
  CHECK(values(tape.gradient(y, x, {.seed = vector({1, 2})})) == Doubles{20, 80});
  CHECK(calls == 0);
}

TEST_CASE("a parameter's hook runs once, on the total, before anything is added into grad()") {
  Tensor w = vector({1, 2}).requires_grad(), b = vector({0}).requires_grad();
  Tape tape;
  std::vector<Doubles> seen;
  tape.hook(w, [&](const Tensor& gradient) {
    if (seen.empty()) CHECK_FALSE(b.grad().defined());
    seen.push_back(values(gradient));
    return clamp(gradient, -1, 1);
  });
  tape.backward(sum(w * 3 + w * w + b));
  CHECK(seen == std::vector<Doubles>{{5, 7}});
  CHECK(values(w.grad()) == Doubles{1, 1});
  CHECK(values(b.grad()) == Doubles{2});
  // The hook outlives the step, whose entries are cleared.
  tape.backward(sum(w * 0.25));
  CHECK(seen.size() == 2);
  CHECK(values(w.grad()) == Doubles{1.25, 1.25});
  tape.backward(sum(b * b));
  CHECK(seen.size() == 2);
}

TEST_CASE("a parameter's hook runs as soon as its first use has been differentiated, before earlier ops are") {
  Tensor first = vector({2}).requires_grad(), shared = vector({3}).requires_grad(), last = vector({5}).requires_grad();
  for (bool restricted : {false, true}) {
    Tape tape;
    std::string order;
    tape.hook(first, [&](const Tensor&) { order += "first "; });
    tape.hook(shared, [&](const Tensor&) { order += "shared "; });
    tape.hook(last, [&](const Tensor&) { order += "last "; });
    tape.hook_op("exp", [&](const OpGradients&) { order += "exp "; });
    tape.hook_op("tanh", [&](const OpGradients&) { order += "tanh "; });
    Tensor y = sum(tanh(exp(first) * shared) * shared * last);
    if (restricted)
      tape.gradient(y, first, shared, last);
    else
      tape.backward(y);
    CHECK(order == "last tanh shared exp first ");
  }
}

TEST_CASE("a hook on what a step computed ends with the step, and every hook with its tape") {
  Tensor w = vector({2}).requires_grad();
  int calls = 0;
  auto count = [&](const Tensor&) { ++calls; };
  {
    Tape tape;
    Tensor h = w * 2;
    tape.hook(h, count);
    tape.hook(w, count);
    tape.backward(sum(h * h));
    CHECK(calls == 2);
    Tensor other = w * 2;
    tape.backward(sum(other * other));
    CHECK(calls == 3);
  }
  Tape tape;
  tape.backward(sum(w * w));
  CHECK(calls == 3);
}

TEST_CASE("a hook on a watched tensor runs in backward too") {
  Tensor x = vector({3}), w = vector({2}).requires_grad();
  Tape tape;
  tape.watch(x);
  Doubles seen;
  tape.hook(x, [&](const Tensor& gradient) { seen = values(gradient); });
  tape.backward(sum(x * w));
  CHECK(seen == Doubles{2});
  CHECK(values(w.grad()) == Doubles{3});
}

TEST_CASE("a hook belongs to its own tape, and what it computes is recorded by outer ones") {
  Tensor x = vector({3});
  Tape outer;
  outer.watch(x);
  int calls = 0;
  Tensor g;
  {
    Tape inner;
    Tensor y = x * x * x;
    outer.hook(x, [&](const Tensor&) { ++calls; });
    inner.hook(y, [&](const Tensor& gradient) { return gradient * x; });
    g = inner.gradient(sum(y), x);  // x · 3x²
  }
  CHECK(values(g) == Doubles{81});
  CHECK(calls == 0);
  CHECK(values(outer.gradient(sum(g), x)) == Doubles{81});
  CHECK(calls == 1);
}

TEST_CASE("a hook that throws leaves every grad() as it was") {
  Tensor w = vector({1}).requires_grad(), b = vector({1}).requires_grad();
  Tape tape({.persistent = true});
  Tensor y = sum(w * b);
  bool throws = true;
  tape.hook(b, [&](const Tensor&) {
    if (throws) throw std::runtime_error("enough");
  });
  CHECK_THROWS_WITH(tape.backward(y), "enough");
  CHECK_FALSE(w.grad().defined());
  CHECK_FALSE(b.grad().defined());
  throws = false;
  tape.backward(y);
  CHECK(values(w.grad()) == Doubles{1});
}

TEST_CASE("a hook sees the whole of a weight gradient that is formed by deferred products") {
  Tensor w = randn({4, 4}, {.dtype = f64}).requires_grad(), x = randn({2, 4}, {.dtype = f64});
  auto gradient = [&](bool deferred, bool hooked) {
    Tape tape({.deferred_products = deferred});
    Tensor scaled = w * 0.5, h = x;
    int calls = 0;
    auto twice = [&](const Tensor& gradient) {
      ++calls;
      return gradient * 2;
    };
    if (hooked) tape.hook(w, twice);
    for (int t = 0; t < 5; ++t) h = tanh(matmul(matmul(h, w), scaled));
    if (hooked) tape.hook(scaled, twice);
    Tensor found = tape.gradient(sum(h), w);
    CHECK(calls == (hooked ? 2 : 0));
    return values(found);
  };
  Doubles expected = gradient(false, true), found = gradient(true, true), plain = gradient(true, false);
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-12));
  CHECK(found[0] != Approx(plain[0]));
}

TEST_CASE("hooks run for each row of a jacobian") {
  Tensor x = vector({1, 2, 3});
  Tape tape;
  tape.watch(x);
  Tensor h = x * 1, y = h * h;
  int calls = 0;
  tape.hook(h, [&](const Tensor& gradient) {
    ++calls;
    return gradient * 10;
  });
  CHECK(values(tape.jacobian(y, x)) == Doubles{20, 0, 0, 0, 40, 0, 0, 0, 60});
  CHECK(calls == 3);
}

TEST_CASE("a hook sees a half's gradient in its own dtype, and leaves the sum as exact as it was") {
  Tensor x = full({2}, 1.0, {.dtype = bf16});
  auto gradient = [&](bool hooked) {
    Tape tape;
    tape.watch(x);
    if (hooked) tape.hook(x, [](const Tensor& gradient) { CHECK(gradient.dtype() == bf16); });
    Tensor total = zeros({2}, {.dtype = bf16});
    for (int i = 0; i < 5; ++i) total = total + x * 1.0078125;
    return to(tape.gradient(sum(total), x), f64);
  };
  CHECK(values(gradient(true)) == values(gradient(false)));
}

TEST_CASE("a hooked table's gradient comes dense") {
  Tensor table = ones({4, 2}).requires_grad();
  Tape tape;
  Shape seen;
  tape.hook(table, [&](const Tensor& gradient) {
    seen = gradient.shape();
    return gradient * 3;
  });
  tape.backward(sum(embedding(table, tensor({1, 1, 3}), {.row_gradient = true})));
  CHECK(seen == Shape{4, 2});
  CHECK_FALSE(table.row_grad().defined());
  CHECK(table.grad().to_vector<float>() == std::vector<float>{0, 0, 6, 6, 0, 0, 3, 3});
}

TEST_CASE("a hook may keep its argument, use other parameters, and open a tape where an outer one records") {
  Tensor w = vector({2}).requires_grad(), other = vector({5}).requires_grad(), kept;
  Tape outer;
  Tape tape;
  tape.hook(w, [&](const Tensor& gradient) {
    kept = gradient;
    Tape own;
    return own.gradient(sum(other * other * gradient), other);
  });
  tape.backward(sum(w * w));
  CHECK(values(w.grad()) == Doubles{40});
  CHECK(values(kept) == Doubles{4});
  CHECK_FALSE(other.grad().defined());
}

TEST_CASE("a hook's ops report its own lines") {
  Tensor w = vector({2}).requires_grad();
  Tape tape;
  int line = 0;
  tape.hook(w, [&](const Tensor& gradient) {
    line = __LINE__ + 1;
    return matmul(gradient, ones({3, 3}));
  });
  std::string text = error_of<Error>([&] { tape.backward(sum(w * w)); });
  CHECK_THAT(text, contains("hooks_test.cpp:" + std::to_string(line)));
}

TEST_CASE("a hook cannot use the tape that calls it, and the tape is as it was") {
  Tensor x = vector({2});
  Tape tape({.persistent = true});
  tape.watch(x);
  Tensor y = sum(x * x);
  std::function<void()> use = [&] { tape.gradient(y, x); };
  tape.hook(x, [&](const Tensor&) { use(); });
  CHECK_THAT(error_of<TapeError>([&] { tape.gradient(y, x); }), contains("is being differentiated"));
  use = [&] { tape.hook(x, [](const Tensor&) {}); };
  CHECK_THAT(error_of<TapeError>([&] { tape.gradient(y, x); }), contains("is being differentiated"));
  use = [] {};
  CHECK(values(tape.gradient(y, x)) == Doubles{4});
}

TEST_CASE("what a hook may not do is an error that names the hook's line") {
  Tensor x = vector({1, 2});
  auto error_with = [&](auto f) {
    Tape tape;
    tape.watch(x);
    tape.hook(x, f);
    return error_of<Error>([&] { tape.gradient(sum(x * x), x); });
  };
  CHECK_THAT(error_with([](const Tensor&) { return ones({3}); }),
             contains("hook: the hook gave (3,) f32 on cpu for the gradient of the hooked tensor, which is (2,) f64"));
  CHECK_THAT(error_with([](const Tensor&) { return ones({2}); }), contains("gave (2,) f32"));
  CHECK_THAT(error_with([](const Tensor& gradient) { mul_(gradient, 2); }), contains("overwrote the gradient"));
  Tape tape;
  CHECK_THAT(error_of<TapeError>([&] { tape.hook(x, [](const Tensor&) {}); }), contains("is not tracked"));
  CHECK_THAT(error_of<Error>([&] { tape.hook(Tensor{}, [](const Tensor&) {}); }), contains("undefined tensor"));
  CHECK_THROWS_AS(tape.hook(tensor({1, 2}), [](const Tensor&) {}), DTypeError);
  tape.watch(x);
  CHECK_THAT(error_of<Error>([&] { tape.hook(x, GradientHook{}); }), contains("is empty"));
  CHECK_THAT(error_of<Error>([&] { tape.hook_op("relu", OpHook{}); }), contains("is empty"));
}

TEST_CASE("a hook on relu makes guided back-propagation") {
  Tensor x = vector({-1, 2, 3}), w = vector({1, 1, -1});
  Tape tape({.persistent = true});
  tape.watch(x);
  int line = __LINE__ + 1;
  Tensor y = sum(relu(x * 1) * w);
  CHECK(values(tape.gradient(y, x)) == Doubles{0, 1, -1});
  int calls = 0;
  tape.hook_op("relu", [&](const OpGradients& gradients) {
    ++calls;
    CHECK(std::string(gradients.op) == "relu");
    CHECK(gradients.where.line == line);
    REQUIRE(gradients.outputs.size() == 1);
    REQUIRE(gradients.inputs.size() == 1);
    CHECK(values(gradients.outputs[0]) == Doubles{1, 1, -1});
    CHECK(values(gradients.inputs[0]) == Doubles{0, 1, -1});
    gradients.inputs[0] = relu(gradients.inputs[0]);
  });
  CHECK(values(tape.gradient(y, x)) == Doubles{0, 1, 0});
  CHECK(calls == 1);
}

TEST_CASE("a hook on an op sees what each input is given, also where two are one tensor or nobody asks") {
  Tensor x = vector({2, 3}), other = vector({5, 7});
  Tape tape({.persistent = true});
  tape.watch(x);
  Tensor square = x * x, product = x * other, y = sum(square + product);
  std::vector<std::vector<Doubles>> seen;
  tape.hook_op("mul", [&](const OpGradients& gradients) {
    seen.emplace_back();
    for (const Tensor& gradient : gradients.inputs)
      seen.back().push_back(gradient.defined() ? values(gradient) : Doubles{});
  });
  CHECK(values(tape.gradient(y, x)) == Doubles{9, 13});
  CHECK(seen == std::vector<std::vector<Doubles>>{{{5, 7}, {}}, {{2, 3}, {2, 3}}});
  // An undefined gradient stops propagation; hooks on one op see each other's results.
  tape.hook_op("mul", [](const OpGradients& gradients) { gradients.inputs[0].reset(); });
  tape.hook_op("mul", [](const OpGradients& gradients) { CHECK_FALSE(gradients.inputs[0].defined()); });
  CHECK(values(tape.gradient(y, x)) == Doubles{2, 3});
}

TEST_CASE("a hook on an op leaves gradients as they are with every way of giving them") {
  Tensor table = randn({6, 4}, {.dtype = f64}).requires_grad(), w = randn({4, 4}, {.dtype = f64}).requires_grad();
  Tensor scale = randn({4}, {.dtype = f64}).requires_grad();
  auto loss = [&] {
    Tensor h = embedding(table, tensor({1, 5, 1}), {.row_gradient = true});
    for (int i = 0; i < 3; ++i) h = tanh(matmul(h, w) * scale + h);
    return sum(concat({h, h * h}));
  };
  auto gradients = [&](std::initializer_list<const char*> hooked) {
    Tape tape;
    int calls = 0;
    for (const char* op : hooked) tape.hook_op(op, [&](const OpGradients&) { ++calls; });
    auto [a, b, c] = tape.gradient(loss(), table, w, scale);
    CHECK((calls > 0) == (hooked.size() > 0));
    return std::vector{values(a), values(b), values(c)};
  };
  auto expected = gradients({}), found = gradients({"embedding", "matmul", "mul", "add", "tanh", "concat", "sum"});
  for (std::size_t i = 0; i < expected.size(); ++i)
    for (std::size_t k = 0; k < expected[i].size(); ++k) CHECK(found[i][k] == Approx(expected[i][k]).epsilon(1e-12));
}

TEST_CASE("a hook on an op is differentiable, and one that throws leaves the entry as it was") {
  Tensor x = vector({2});
  Tape outer;
  outer.watch(x);
  Tape inner({.persistent = true});
  Tensor y = sum(x * x);
  inner.hook_op("mul", [&](const OpGradients& gradients) {
    for (Tensor& gradient : gradients.inputs) gradient = gradient * x;
  });
  Tensor g = inner.gradient(y, x);  // x · 2x
  CHECK(values(g) == Doubles{8});
  CHECK(values(outer.gradient(g, x)) == Doubles{8});
  Tape tape({.persistent = true});
  tape.watch(x);
  Tensor z = sum(x * x);
  bool throws = true;
  tape.hook_op("mul", [&](const OpGradients&) {
    if (throws) throw std::runtime_error("enough");
  });
  CHECK_THROWS_WITH(tape.gradient(z, x), "enough");
  throws = false;
  CHECK(values(tape.gradient(z, x)) == Doubles{4});
}

TEST_CASE("what goes wrong in a hook is named by its own line, and in no op's gradient") {
  Tensor x = vector({2});
  for (bool leaf : {false, true}) {
    Tape tape;
    tape.watch(x);
    Tensor y = x * x, target = sum(exp(y));
    int line = __LINE__ + 1;
    tape.hook(leaf ? x : y, [](const Tensor& gradient) { return log(-gradient); });
    auto scope = debug::detect_anomaly();
    try {
      tape.gradient(target, x);
      FAIL("nothing was found");
    } catch (const AnomalyError& error) {
      CHECK(error.where().line == line);
      CHECK(error.anomaly().op == "log");
      CHECK(error.anomaly().gradient_of.empty());
    }
  }
}

TEST_CASE("what a hook gives is a plain value, even if it was recorded") {
  Tensor x = vector({2});
  for (bool of_op : {false, true}) {
    Tensor found;
    {
      Tape tape;
      tape.watch(x);
      Tensor y = x * 3, recorded = y * 5;
      tape.trace(x);
      if (of_op)
        tape.hook_op("mul", [&](const OpGradients& gradients) { gradients.inputs[0] = std::move(recorded); });
      else
        tape.hook(x, [&](const Tensor&) { return std::move(recorded); });
      found = tape.gradient(y, x);
      CHECK(values(found) == Doubles{30});
      CHECK_NOTHROW(tape.traced()[0].gradient * x);
    }
    Tape tape;
    tape.watch(x);
    CHECK(values(tape.gradient(found * x, x)) == Doubles{30});
  }
}

TEST_CASE("a hook on an op that no tape records says why") {
  Tape tape;
  auto ignore = [](const OpGradients&) {};
  CHECK_THAT(error_of<Error>([&] { tape.hook_op("rellu", ignore); }), contains("there is no op named 'rellu'"));
  CHECK_THAT(error_of<Error>([&] { tape.hook_op("clamp_", ignore); }), contains("is composed of other ops"));
  CHECK_THAT(error_of<Error>([&] { tape.hook_op("argmax", ignore); }), contains("has no gradient"));
  CHECK_THAT(error_of<Error>([&] { tape.hook_op("fill_", ignore); }), contains("is recorded as copy_"));
}

TEST_CASE("a hook on an op whose result does not fit is an error") {
  Tensor x = vector({2});
  Tape tape;
  tape.watch(x);
  tape.hook_op("mul", [](const OpGradients& gradients) { gradients.inputs[1] = ones({2}, {.dtype = f64}); });
  CHECK_THAT(error_of<ShapeError>([&] { tape.gradient(sum(x * x), x); }),
             contains("hook_op: the hook gave (2,) f64 on cpu for the gradient of input 1 of mul, which is (1,) f64"));
}
