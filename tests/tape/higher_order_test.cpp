#include <reel/reel.h>

#include <cmath>

#include "catch.h"

using namespace reel;

namespace {

Tensor scalar(double value) { return full({}, value, {.dtype = f64}); }

}  // namespace

TEST_CASE("two nested tapes give the second derivative") {
  Tensor x = scalar(0.7);
  Tape outer;
  outer.watch(x);
  Tensor first;
  {
    Tape inner;
    first = inner.gradient(tanh(x), x);
  }
  double t = std::tanh(0.7);
  CHECK(first.item() == Approx(1 - t * t));
  CHECK(outer.gradient(first, x).item() == Approx(-2 * t * (1 - t * t)));
}

TEST_CASE("three nested tapes give the third derivative") {
  Tensor x = scalar(0.4);
  Tape a;
  a.watch(x);
  Tensor second;
  {
    Tape b;
    Tensor first;
    {
      Tape c;
      first = c.gradient(exp(x * 2.0) * x, x);
    }
    second = b.gradient(first, x);
  }
  double e = std::exp(0.8);
  CHECK(second.item() == Approx(e * (4 * 0.4 + 4)));
  CHECK(a.gradient(second, x).item() == Approx(e * (8 * 0.4 + 12)));
}

TEST_CASE("an inner tape differentiates through what an outer one recorded before it opened") {
  Tensor x = scalar(3);
  Tape outer;
  outer.watch(x);
  Tensor h = x * x;
  Tape inner;
  Tensor y = h * x;
  CHECK(inner.gradient(y, x).item() == 27);
}

TEST_CASE("the identity has gradient one on every tape") {
  Tensor x = scalar(3);
  Tape outer;
  outer.watch(x);
  Tape inner;
  inner.watch(x);
  CHECK(inner.gradient(x, x).item() == 1);
}

TEST_CASE("a function that returns its argument passes both checks") {
  auto identity = [](std::span<const Tensor> in) { return in[0]; };
  Tensor x = tensor({1.0, 2.0});
  CHECK(debug::gradcheck(identity, {x}).agrees);
  CHECK(debug::gradgradcheck(identity, {x}).agrees);
}

TEST_CASE("the mixed second derivative of a power is right where the exponent is 0") {
  // d/db d/da a^b = a^(b−1) (1 + b log a), which is 1/a at b = 0
  Tensor a = scalar(4), b = scalar(0);
  Tape outer;
  outer.watch(b);
  Tensor ga;
  {
    Tape inner;
    inner.watch(a);
    ga = inner.gradient(pow(a, b), a);
  }
  CHECK(ga.item() == 0);
  CHECK(outer.gradient(ga, b).item() == Approx(0.25));
}

TEST_CASE("an outermost tape does not forget while an inner one is open") {
  Tensor x = scalar(3);
  Tape outer;
  outer.watch(x);
  Tensor y = x * x;
  Tape inner;
  Tensor z = y * x;
  CHECK(outer.gradient(y, x).item() == 6);
  CHECK(inner.gradient(z, x).item() == 27);
}

TEST_CASE("an inner tape's gradient is not recorded under NoRecord") {
  Tensor x = scalar(3);
  Tape outer;
  outer.watch(x);
  Tape inner;
  Tensor y = x * x * x;
  Tensor g;
  {
    NoRecord pause;
    g = inner.gradient(y, x);
  }
  CHECK(g.item() == 27);
  CHECK_THROWS_AS(outer.gradient(g, x), TapeError);
}

TEST_CASE("the gradient of a gradient norm trains a penalty") {
  // d/dw |d/dx (w x²)|² = d/dw (2 w x)² = 8 w x²
  Tensor w = scalar(1.5).requires_grad(), x = scalar(2);
  Tape outer;
  Tensor penalty;
  {
    Tape inner;
    inner.watch(x);
    Tensor gx = inner.gradient(w * square(x), x);
    penalty = square(gx);
  }
  outer.backward(penalty);
  CHECK(w.grad().item() == Approx(8 * 1.5 * 4));
}

TEST_CASE("second order runs through matmul, softmax, cross entropy and indexing") {
  Tensor x = randn({4, 3}, {.dtype = f64}), w = randn({3, 5}, {.dtype = f64});
  Tensor targets = tensor({0L, 4L, -100L, 2L});
  auto network = [&](std::span<const Tensor> in) {
    Tensor h = tanh(matmul(in[0], in[1]));
    Tensor mixed = concat({h, softmax(h, 0)}, 1);
    return cross_entropy(slice(mixed, 1, 0, 10, 2), targets);
  };
  auto first = debug::gradcheck(network, {x, w});
  CHECK(first.agrees);
  INFO(first.text);
  auto second = debug::gradgradcheck(network, {x, w});
  INFO(second.text);
  CHECK(second.agrees);
}
