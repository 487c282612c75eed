#include <reel/reel.h>

#include "catch.h"

// Gradients step by step through a recurrent net.

using namespace reel;
using namespace reel_test;

namespace {

using Doubles = std::vector<double>;

double norm(const Tensor& x) { return sqrt(sum(x * x)).item(); }

constexpr int steps = 12, cut_every = 4;

// h_t = tanh(h_{t−1} W + x_t) with a loss at each step.
struct Recurrent {
  Tensor w = (randn({3, 3}, {.dtype = f64}) * 0.6).requires_grad();
  Tensor x = randn({steps, 1, 3}, {.dtype = f64}), weights = randn({steps, 1, 3}, {.dtype = f64});

  struct Cut {
    Tensor before, after;
  };
  Tensor loss(bool truncated, std::vector<Cut>& cuts) const {
    Tensor h = zeros({1, 3}, {.dtype = f64}), total = zeros({}, {.dtype = f64});
    for (int t = 0; t < steps; ++t) {
      if (truncated && t > 0 && t % cut_every == 0) {
        Tensor before = h;
        h = truncate(h);
        cuts.push_back({before, h});
      }
      h = tanh(matmul(h, w) + select(x, 0, t));
      total = total + sum(h * select(weights, 0, t));
    }
    return total;
  }
};

}  // namespace

TEST_CASE("traced gradients show by their norms where a recurrent net's gradients vanish and explode") {
  for (double factor : {0.5, 1.0, 2.0}) {
    Tensor w = (eye(3, {.dtype = f64}) * factor).requires_grad();
    Tape tape;
    Tensor h = ones({1, 3}, {.dtype = f64});
    std::vector<int> lines;
    for (int t = 0; t < steps; ++t) {
      h = matmul(h, w);
      tape.trace(h);
    }
    int line = __LINE__ - 2;
    CHECK(tape.traced().empty());
    tape.backward(sum(h));
    std::vector<Traced> traced = tape.traced();
    REQUIRE(traced.size() == steps);
    for (int t = 0; t < steps; ++t) {
      CHECK(norm(traced[t].gradient) == Approx(std::sqrt(3.0) * std::pow(factor, steps - 1 - t)));
      CHECK(traced[t].where.line == line);
      CHECK_FALSE(traced[t].truncated);
    }
    // The tape has ended; its traces stay readable until the next differentiation.
    tape.backward(sum(w));
    CHECK(tape.traced().empty());
  }
}

TEST_CASE("what is traced is found where a source alone would not lead the backward pass") {
  Tensor w = ones({2}).requires_grad(), x = ones({2});
  Tape tape({.persistent = true});
  tape.watch(x);
  Tensor h = x * 2, unrelated = x * 5, y = sum(h * w);
  tape.trace(h);
  tape.trace(unrelated);
  tape.trace(w);
  tape.trace(y);
  tape.backward(y);
  std::vector<Traced> traced = tape.traced();
  REQUIRE(traced.size() == 4);
  CHECK(traced[0].gradient.to_vector<float>() == std::vector<float>{1, 1});
  CHECK_FALSE(traced[1].gradient.defined());
  CHECK(traced[2].gradient.to_vector<float>() == std::vector<float>{2, 2});
  CHECK(traced[3].gradient.item() == 1);
  tape.gradient(y, w);
  CHECK(tape.traced()[0].gradient.defined());
  CHECK_THAT(error_of<TapeError>([&] { tape.backward(sum(h)); }), contains("does not depend on any parameter"));
}

TEST_CASE("a trace keeps what the hooks have made of a gradient, and belongs to its own tape") {
  Tensor x = ones({}, {.dtype = f64});
  Tape outer;
  outer.watch(x);
  {
    Tape inner;
    Tensor h = x * 2, y = h * h;
    inner.trace(h);
    outer.trace(y);
    inner.hook(h, [](const Tensor& gradient) { return gradient * 10; });
    Tensor g = inner.gradient(y, x);
    REQUIRE(inner.traced().size() == 1);
    Tensor kept = inner.traced()[0].gradient;
    CHECK(kept.item() == 40);
    // Recorded by the outer tape: 10 · 2h = 40 x.
    CHECK(outer.gradient(kept, x).item() == 40);
    REQUIRE(outer.traced().size() == 1);
    CHECK_FALSE(outer.traced()[0].gradient.defined());
  }
  CHECK(outer.traced().size() == 1);
}

TEST_CASE("what cannot be traced says why") {
  Tensor x = ones({2}), h;
  Tape tape;
  CHECK_THAT(error_of<TapeError>([&] { tape.trace(x); }), contains("trace: (2,) f32, made at"));
  CHECK_THAT(error_of<Error>([&] { tape.trace(Tensor{}); }), contains("undefined tensor"));
  CHECK_THROWS_AS(tape.trace(tensor({1, 2})), DTypeError);
  CHECK_THROWS_AS(truncate(tensor({1, 2})), DTypeError);
  CHECK_THAT(error_of<Error>([] { truncate(Tensor{}); }), contains("undefined tensor"));
  tape.watch(x);
  h = x * 2;
  tape.gradient(sum(h), x);
  CHECK_THAT(error_of<TapeError>([&] { tape.trace(h); }), contains("belongs to a tape that has finished"));
}

TEST_CASE("truncated gradient and cut components make up the whole gradient") {
  manual_seed(7);
  Recurrent net;
  std::vector<Recurrent::Cut> cuts;
  Tensor full;
  {
    Tape tape;
    full = tape.gradient(net.loss(false, cuts), net.w);
  }
  Tape tape({.persistent = true});
  Tensor loss = net.loss(true, cuts);
  Tensor total = tape.gradient(loss, net.w);
  CHECK(max(abs(total - full)).item() > 1e-3);
  std::vector<Traced> traced = tape.traced();
  REQUIRE(traced.size() == cuts.size());
  REQUIRE(cuts.size() == 2);
  for (const Traced& cut : traced) CHECK(cut.truncated);
  // The gradient through a truncation is part of that at the previous one.
  std::vector<Tensor> arriving;
  for (const Traced& cut : traced) arriving.push_back(cut.gradient);
  for (std::size_t i = cuts.size(); i-- > 0;) {
    Tensor component = tape.gradient(cuts[i].before, net.w, {.seed = arriving[i]});
    total = total + component;
    for (std::size_t k = 0; k < i; ++k)
      if (Tensor further = tape.traced()[k].gradient; further.defined()) arriving[k] = arriving[k] + further;
  }
  CHECK(max(abs(total - full)).item() < 1e-12);
}

TEST_CASE("a truncated tensor is a source, ends gradients, and is a plain value outside a tape") {
  Tensor w = full({}, 3.0, {.dtype = f64}).requires_grad();
  CHECK_FALSE(truncate(w).is_parameter());
  Tape tape({.persistent = true});
  Tensor h = w * w, cut = truncate(h), y = cut * cut * w;
  auto [gw, gcut] = tape.gradient(y, w, cut);
  CHECK(gw.item() == 81);
  CHECK(gcut.item() == 54);
  CHECK(tape.gradient(h, w, {.seed = gcut}).item() == 54 * 6);
  tape.backward(y);
  CHECK(w.grad().item() == 81);
  CHECK(tape.traced()[0].gradient.item() == 54);
}

TEST_CASE("the gradient of a layer after a truncation is differentiated again") {
  manual_seed(8);
  Tensor w = full({4}, 0.5, {.dtype = f64}).requires_grad();
  RecurrentWeights weights{randn({4, 12}, {.dtype = f64}).requires_grad(),
                           randn({4, 12}, {.dtype = f64}).requires_grad(), randn({16}, {.dtype = f64}).requires_grad()};
  auto loss = [&](bool truncates) {
    Tensor x = ones({2, 4}, {.dtype = f64}) * w;
    if (truncates) x = truncate(x);
    return sum(square(gru(reshape(x, {2, 1, 4}), {}, std::span(&weights, 1)).output));
  };
  auto second = [&](bool truncates) {
    Tape outer;
    Tensor gradient;
    {
      Tape inner;
      gradient = inner.gradient(loss(truncates), weights.W_x);
    }
    return outer.gradient(sum(square(gradient)), weights.W_x);
  };
  // While the outer tape records, the gradient is that of the layer's steps, which a tape of its own differentiates.
  CHECK(max(abs(second(true) - second(false))).item() < 1e-12);

  Tape outer;
  Tensor m = loss(true) * 1, gradient;
  {
    Tape inner;
    inner.watch(m);
    gradient = inner.gradient(tanh(m), m);
  }
  CHECK(abs(gradient - (1 - square(tanh(m)))).item() < 1e-12);
}

TEST_CASE("truncation carries a state on from step to step of one tape") {
  Tensor w = full({}, 2.0, {.dtype = f64}).requires_grad(), h = ones({}, {.dtype = f64});
  Tape tape;
  for (int step = 0; step < 3; ++step) {
    h = truncate(h);
    Tensor before = stop_gradient(h);
    for (int t = 0; t < 2; ++t) h = h * w;
    w.set_grad({});
    tape.backward(h);
    CHECK(w.grad().item() == 4 * before.item());
    REQUIRE(tape.traced().size() == 1);
    CHECK(tape.traced()[0].gradient.item() == 4);
  }
}
