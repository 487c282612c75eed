#include <reel/reel.h>

#include <array>
#include <string>
#include <thread>

#include "catch.h"

// A tensor that is tracked only after an op has used it would lose that use's share of the gradient.

using namespace reel;
using namespace reel_test;

namespace {

std::string location(int line) { return "late_watch_test.cpp:" + std::to_string(line); }

// Checks the error of watching x after its use at `line`.
void check_refused(const std::string& text, const char* function, const char* op, int line) {
  CHECK_THAT(text, contains(function));
  CHECK_THAT(text, contains(std::string("was used by ") + op));
  CHECK_THAT(text, contains(location(line)));
}

}  // namespace

TEST_CASE("watching a tensor after an op has used it is refused, and the use's op and line are named") {
  Tensor x = full({}, 3.0), w = ones({}).requires_grad();
  Tape tape;
  int line = __LINE__ + 1;
  Tensor h = x * 2;
  check_refused(error_of<TapeError>([&] { tape.watch(x); }), "watch: ", "mul", line);
  // The failed watch has changed nothing.
  CHECK_THROWS_AS(tape.gradient(x * w, x), TapeError);
  // Another handle has the gradient of its own uses.
  Tensor own = stop_gradient(x);
  tape.watch(own);
  CHECK(tape.gradient(h * own, own).item() == 6);
}

TEST_CASE("making a parameter of a tensor after an op has used it is refused, and the use's line is named") {
  Tensor x = full({}, 3.0);
  Tape tape;
  int line = __LINE__ + 1;
  Tensor h = exp(x);
  check_refused(error_of<TapeError>([&] { x.requires_grad(); }), "requires_grad: ", "exp", line);
  CHECK_FALSE(x.is_parameter());
}

TEST_CASE("the use by an op that is recorded for another operand counts") {
  Tensor x = full({}, 3.0), w = ones({}).requires_grad();
  Tape tape;
  int line = __LINE__ + 1;
  Tensor product = w * x;
  check_refused(error_of<TapeError>([&] { tape.watch(x); }), "watch: ", "mul", line);
  line = __LINE__ + 1;
  Tensor joined = concat({reshape(w, {1}), ones({2})});
  Tensor part = ones({2});
  line = __LINE__ + 1;
  joined = concat({reshape(w, {1}), part});
  check_refused(error_of<TapeError>([&] { tape.watch(part); }), "watch: ", "concat", line);
}

TEST_CASE("an op in place uses its operands, but not what it overwrites") {
  Tensor x = full({}, 3.0), sum = ones({});
  Tape tape;
  int line = __LINE__ + 1;
  add_(sum, x);
  check_refused(error_of<TapeError>([&] { tape.watch(x); }), "watch: ", "add_", line);
  tape.watch(sum);
  CHECK(tape.gradient(sum * sum, sum).item() == 8);
}

TEST_CASE("uses that are no part of a gradient do not count") {
  Tensor x = full({}, 3.0);
  Tensor before = x * 2;
  Tape tape;
  {
    NoRecord pause;
    Tensor unseen = x * 2;
  }
  CHECK((x > 5).item<bool>() == false);
  CHECK(stop_gradient(x).item() == 3);
  CHECK(x.to_vector<float>().size() == 1);
  CHECK(zeros_like(x).item() == 0);
  tape.watch(x);
  CHECK(tape.gradient(x * x, x).item() == 6);
}

TEST_CASE("uses before the tape opened, or before it was differentiated, do not count") {
  Tensor x = full({}, 3.0), w = ones({}).requires_grad();
  {
    Tape earlier;
    Tensor h = x * w;
  }
  Tape outer;
  Tensor h = x * w;
  {
    Tape inner;
    inner.watch(x);
    CHECK(inner.gradient(x * x, x).item() == 6);
  }
  outer.gradient(h, w);
  outer.watch(x);
  CHECK(outer.gradient(x * x, x).item() == 6);
}

TEST_CASE("a use within an inner tape counts for the tape around it") {
  Tensor x = full({}, 3.0), w = ones({}).requires_grad();
  Tape outer;
  Tensor h;
  int line = 0;
  {
    Tape inner;
    line = __LINE__ + 1;
    h = x * w;
  }
  check_refused(error_of<TapeError>([&] { outer.watch(x); }), "watch: ", "mul", line);
}

TEST_CASE("what is made within a tape becomes a parameter as long as nothing has used it") {
  Tape tape;
  Tensor w = randn({3}) * 0.1;
  w.requires_grad();
  Tensor b = zeros({3}).requires_grad();
  nn::Linear layer(3, 2);
  tape.backward(sum(layer(reshape(w * 2 + b, {1, 3}))));
  CHECK(w.grad().defined());
  CHECK(b.grad().defined());
  CHECK(layer.parameters()[0].grad().defined());
}

TEST_CASE("what overwrites a tensor as a whole makes it a new one, which may be watched") {
  Tensor x = full({2}, 3.0);
  Tape tape;
  Tensor h = x * 2;
  copy_(x, ones({2}));
  tape.watch(x);
  CHECK(sum(tape.gradient(sum(x * h), x)).item() == 12);
  Tensor y = full({2}, 3.0);
  h = y * 2;
  y.write<float>()[0] = 1;
  tape.watch(y);
  Tensor z = full({2}, 3.0);
  int line = __LINE__ + 1;
  h = z * 2;
  z(0) = 1;
  check_refused(error_of<TapeError>([&] { tape.watch(z); }), "watch: ", "mul", line);
}

TEST_CASE("a parameter that was frozen for a while is one again, without the uses meanwhile") {
  Tensor w = full({}, 3.0).requires_grad();
  Tape tape;
  Tensor first = w * w;
  w.requires_grad(false);
  w.requires_grad();
  tape.backward(first);
  CHECK(w.grad().item() == 6);
  w.requires_grad(false);
  int line = __LINE__ + 1;
  Tensor constant = w * 2;
  check_refused(error_of<TapeError>([&] { tape.watch(w); }), "watch: ", "mul", line);
  w.requires_grad();
  w.set_grad({});
  tape.backward(constant * w);
  CHECK(w.grad().item() == 6);
}

TEST_CASE("a backward pass that an outer tape records uses what the gradients depend on") {
  Tensor w = ones({}).requires_grad(), x = full({}, 3.0);
  Tape outer;
  int line = __LINE__ + 1;
  Tensor h = w * x;
  Tape inner;
  // It is x, so that its derivative by x is 1.
  Tensor by_w = inner.gradient(h, {h, w})[1];
  check_refused(error_of<TapeError>([&] { inner.watch(x); }), "watch: ", "mul", line);
}

TEST_CASE("an inner tape's watch does not hide a use from the tape around it") {
  Tensor x = full({}, 3.0), w = full({}, 2.0).requires_grad();
  Tape outer({.persistent = true});
  int line = __LINE__ + 1;
  Tensor h = x * w;
  {
    Tape inner;
    inner.watch(x);
    CHECK(inner.gradient(x * x, x).item() == 6);
  }
  Tensor target = h * x;
  CHECK(outer.gradient(target, w).item() == 9);
  check_refused(error_of<TapeError>([&] { outer.gradient(target, x); }), "gradient: ", "mul", line);
  check_refused(error_of<TapeError>([&] { outer.hook(x, [](const Tensor&) {}); }), "hook: ", "mul", line);
  check_refused(error_of<TapeError>([&] { outer.trace(x); }), "trace: ", "mul", line);
  check_refused(error_of<TapeError>([&] { outer.watch(x); }), "watch: ", "mul", line);
  check_refused(error_of<TapeError>([&] { x.requires_grad(); }), "requires_grad: ", "mul", line);
}

TEST_CASE("a parameter that a checkpoint has captured may be watched and asked for") {
  Tensor x = full({}, 3.0), w = full({}, 2.0).requires_grad();
  Tape tape({.persistent = true});
  tape.watch(x);
  Tensor product = checkpoint([&](const Tensor& v) { return v * w; }, x);
  tape.watch(w);
  CHECK(tape.gradient(product, w).item() == 3);
  w.requires_grad(false);
  tape.watch(w);
  CHECK(tape.gradient(product, w).item() == 3);
}

TEST_CASE("an op that is refused has not used its operands") {
  Tensor w = ones({2, 2}).requires_grad();
  Tape tape;
  Tensor dead = w * 1;
  tape.backward(sum(dead));
  auto check_refused_op = [&](auto op) {
    Tensor x = full({2, 2}, 3.0);
    CHECK_THROWS_AS(op(x), TapeError);
    CHECK_NOTHROW(tape.watch(x));
  };
  check_refused_op([&](const Tensor& x) { return x * dead; });
  check_refused_op([&](const Tensor& x) { return matmul(x, dead); });
  check_refused_op([&](const Tensor& x) { return concat({x, dead}); });
  check_refused_op([&](Tensor& x) { x *= dead; });
  check_refused_op(
      [&](const Tensor& x) { return checkpoint([](const Tensor& a, const Tensor& b) { return a * b; }, x, dead); });
  check_refused_op([&](const Tensor& x) {
    return custom_gradient([](const Tensor& a, const Tensor& b) { return a + b; },
                           [](const Tensor& dy) {
                             return std::array{dy, dy};
                           },
                           x, dead);
  });
}

TEST_CASE("a gradient may be watched although the backward pass has used it") {
  Tensor w = ones({1}).requires_grad(), x = full({1}, 2.0);
  Tape outer;
  Tensor of_result;
  {
    Tape inner;
    Tensor result = w * x;
    auto gradients = inner.gradient(result, {result, w});
    of_result = gradients[0];
  }
  outer.watch(of_result);
  CHECK(outer.gradient(sum(of_result * of_result), of_result).item() == 2);
}

TEST_CASE("watching twice is as good as once") {
  Tensor x = full({}, 3.0);
  Tape tape;
  tape.watch(x);
  Tensor h = x * 2;
  tape.watch(x);
  x.requires_grad();
  CHECK(tape.gradient(h * x, x).item() == 12);
}

TEST_CASE("the use of what another thread made, and a use inside a checkpoint, count") {
  Tensor x, w = ones({}).requires_grad();
  std::thread([&] { x = full({}, 3.0); }).join();
  Tensor y = full({}, 3.0);
  Tape tape;
  int line = __LINE__ + 1;
  Tensor h = x * w;
  check_refused(error_of<TapeError>([&] { tape.watch(x); }), "watch: ", "mul", line);
  line = __LINE__ + 1;
  Tensor kept = checkpoint([&](const Tensor& v) { return v * y; }, w);
  check_refused(error_of<TapeError>([&] { tape.watch(y); }), "watch: ", "mul", line);
  std::thread([&] {
    Tape own;
    own.watch(y);
    CHECK(own.gradient(y * y, y).item() == 6);
  }).join();
}

TEST_CASE("a use is refused however many other tensors have been used since") {
  Tensor x = full({}, 3.0), w = ones({}).requires_grad();
  Tape tape;
  Tensor h = x * w;
  for (int i = 0; i < 10000; ++i) static_cast<void>(ones({}) * 2);
  CHECK_THAT(error_of<TapeError>([&] { tape.watch(x); }), contains("watch: () f32, made at"));
}
