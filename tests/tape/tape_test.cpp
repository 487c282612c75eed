#include <reel/reel.h>

#include <array>
#include <cmath>
#include <functional>
#include <string_view>

#include "catch.h"
#include "printed_to_stderr.h"

using namespace reel;
using namespace reel_test;

namespace {

Tensor scalar(double value) { return full({}, value, {.dtype = f64}); }

}  // namespace

TEST_CASE("the gradient of a composite function equals its closed form") {
  Tensor x = tensor({0.5, -1.5, 2.0}), w = tensor({2.0, 3.0, -1.0}).requires_grad();
  Tape tape;
  tape.watch(x);
  Tensor loss = sum(square(x * w) + exp(x));
  auto [gx, gw] = tape.gradient(loss, x, w);
  for (int i = 0; i < 3; ++i) {
    double xi = x.to_vector<double>()[i], wi = w.to_vector<double>()[i];
    CHECK(gx.to_vector<double>()[i] == Approx(2 * xi * wi * wi + std::exp(xi)));
    CHECK(gw.to_vector<double>()[i] == Approx(2 * xi * xi * wi));
  }
}

TEST_CASE("backward adds into grad of every parameter, and adds again the next time") {
  Tensor w = scalar(3).requires_grad();
  Tape tape;
  tape.backward(w * w);
  CHECK(w.grad().item() == 6);
  tape.backward(w * w * w);
  CHECK(w.grad().item() == 6 + 27);
  w.set_grad({});
  CHECK_FALSE(w.grad().defined());
}

TEST_CASE("backward leaves watched tensors and parameters that do not matter without grad") {
  Tensor w = scalar(3).requires_grad(), idle = scalar(1).requires_grad(), x = scalar(2);
  Tape tape;
  tape.watch(x);
  Tensor unused = idle * 2.0;
  tape.backward(w * x);
  CHECK(w.grad().item() == 2);
  CHECK_FALSE(idle.grad().defined());
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("a tensor used several times gets the sum of its gradients") {
  Tensor x = tensor({1.0, 2.0});
  Tape tape;
  tape.watch(x);
  Tensor y = x * x + x;
  Tensor g = tape.gradient(sum(y + x + x), x);
  CHECK(g.to_vector<double>() == std::vector<double>{5, 7});
}

TEST_CASE("a gradient that flows to several places is changed in none for the sake of another") {
  const Tensor seed = tensor({1.0, 2.0}), ones_then_twos = copy(seed);
  struct Flow {
    std::function<Tensor(const Tensor&, const Tensor&)> value;
    std::function<std::array<double, 2>(double, double)> derivatives;
  };
  auto slope = [](double x) { return 1 - std::tanh(x) * std::tanh(x); };
  const Flow flows[] = {
      {[](const Tensor& a, const Tensor& b) { return a * a + (a + b); },
       [](double a, double) {
         return std::array{2 * a + 1, 1.0};
       }},
      {[](const Tensor& a, const Tensor& b) { return (a + b) + a * a; },
       [](double a, double) {
         return std::array{2 * a + 1, 1.0};
       }},
      {[](const Tensor& a, const Tensor& b) { return tanh(a) + b; },
       [&](double a, double) {
         return std::array{slope(a), 1.0};
       }},
      {[](const Tensor& a, const Tensor& b) { return b + tanh(a); },
       [&](double a, double) {
         return std::array{slope(a), 1.0};
       }},
      {[](const Tensor& a, const Tensor& b) { return tanh(a) * b + (a + b) * a; },
       [&](double a, double b) {
         return std::array{slope(a) * b + 2 * a + b, std::tanh(a) + a};
       }},
      {[](const Tensor& a, const Tensor& b) { return (a + a) * (b + b) + (b + a); },
       [](double a, double b) {
         return std::array{4 * b + 1, 4 * a + 1};
       }},
      {[](const Tensor& a, const Tensor& b) {
         Tensor shared = a * b;
         return (shared + shared) * shared + tanh(shared) + shared;
       },
       [&](double a, double b) {
         double by_product = 4 * a * b + slope(a * b) + 1;
         return std::array{by_product * b, by_product * a};
       }},
  };
  for (const Flow& flow : flows) {
    Tensor a = tensor({0.5, -1.0}).requires_grad(), b = tensor({2.0, 3.0}).requires_grad();
    Tape tape;
    std::vector<Tensor> found = tape.gradient(flow.value(a, b), {a, b}, {.seed = seed});
    for (std::size_t i = 0; i < 2; ++i) {
      auto [wanted_a, wanted_b] = flow.derivatives(a.data<double>()[i], b.data<double>()[i]);
      CHECK(found[0].data<double>()[i] == Approx(wanted_a * seed.data<double>()[i]));
      CHECK(found[1].data<double>()[i] == Approx(wanted_b * seed.data<double>()[i]));
    }
    CHECK(seed.to_vector<double>() == ones_then_twos.to_vector<double>());
  }
}

TEST_CASE("broadcast operands get gradients of their own shapes") {
  Tensor a = randn({3, 1, 4}, {.dtype = f64}), b = randn({2, 1}, {.dtype = f64}), c = scalar(2);
  Tape tape;
  for (const Tensor& x : {a, b, c}) tape.watch(x);
  auto [ga, gb, gc] = tape.gradient(sum(a * b * c), a, b, c);
  CHECK(ga.shape() == a.shape());
  CHECK(gb.shape() == b.shape());
  CHECK(gc.shape() == c.shape());
  CHECK(gc.item() == Approx(sum(a).item() * sum(b).item()));
}

TEST_CASE("mixed dtypes give each operand a gradient of its own dtype") {
  Tensor a = ones({3}), b = ones({3}, {.dtype = f64}), c = ones({3}, {.dtype = bf16});
  Tape tape;
  for (const Tensor& x : {a, b, c}) tape.watch(x);
  auto [ga, gb, gc] = tape.gradient(sum(a * b * c), a, b, c);
  CHECK(ga.dtype() == f32);
  CHECK(gb.dtype() == f64);
  CHECK(gc.dtype() == bf16);
}

TEST_CASE("nothing is recorded without a tape, under NoRecord, or from untracked tensors") {
  Tensor w = scalar(3).requires_grad(), x = scalar(2);
  Tensor before = w * 2.0;
  Tape tape;
  CHECK(tape.size() == 0);
  {
    NoRecord pause;
    CHECK_FALSE(is_recording());
    Tensor paused = w * 2.0;
    CHECK(tape.size() == 0);
  }
  Tensor untracked = x * 2.0;
  CHECK(tape.size() == 0);
  Tensor compared = w > 1.0;
  CHECK(tape.size() == 0);
  Tensor tracked = w * 2.0;
  CHECK(tape.size() == 1);
}

TEST_CASE("stop_gradient lets the value through and nothing back") {
  Tensor x = scalar(3);
  Tape tape;
  tape.watch(x);
  Tensor g = tape.gradient(x * stop_gradient(x), x);
  CHECK(g.item() == 3);
}

TEST_CASE("an intermediate result may be a source, and then a target") {
  Tensor x = scalar(2);
  Tape tape({.persistent = true});
  tape.watch(x);
  Tensor h = x * x;
  Tensor y = h * h * h;
  auto [gh, gx] = tape.gradient(y, h, x);
  CHECK(gh.item() == 3 * 16);
  CHECK(gx.item() == 3 * 16 * 4);
  CHECK(tape.gradient(h, x).item() == 4);
  CHECK(tape.gradient(y, y).item() == 1);
  CHECK(tape.gradient(x, x).item() == 1);
}

TEST_CASE("a target of several elements takes a seed of its shape") {
  Tensor x = tensor({1.0, 2.0, 3.0});
  Tape tape({.persistent = true});
  tape.watch(x);
  Tensor y = x * x;
  Tensor g = tape.gradient(y, x, {.seed = tensor({1.0, 0.0, -1.0})});
  CHECK(g.to_vector<double>() == std::vector<double>{2, 0, -6});
  CHECK_THAT(error_of<TapeError>([&] { tape.gradient(y, x); }), reel_test::contains("not a single element"));
  CHECK_THAT(error_of<ShapeError>([&] { tape.gradient(y, x, {.seed = tensor({1.0})}); }),
             reel_test::contains("seed (1,) f64 does not fit the target (3,) f64"));
}

TEST_CASE("a tape that is not persistent records the next step after it has differentiated") {
  Tensor w = scalar(1).requires_grad();
  Tape tape;
  for (int step = 0; step < 5; ++step) {
    w.set_grad({});
    Tensor loss = square(w - 3.0);
    tape.backward(loss);
    CHECK(tape.size() == 0);
    double next = w.item() - 0.25 * w.grad().item();
    w.write<double>()[0] = next;
  }
  CHECK(w.item() == Approx(3 - 2 * std::pow(0.5, 5)));
}

TEST_CASE("a persistent tape differentiates as often as it is asked") {
  Tensor x = scalar(2);
  Tape tape({.persistent = true});
  tape.watch(x);
  Tensor y = x * x * x;
  for (int i = 0; i < 3; ++i) CHECK(tape.gradient(y, x).item() == 12);
  CHECK(tape.size() == 2);
}

TEST_CASE("saved values are released as backward consumes them") {
  MemoryStatistics before = memory_statistics();
  {
    Tensor w = randn({64}).requires_grad();
    Tape tape;
    Tensor loss = sum(exp(tanh(w * 2.0)) * 3.0);
    tape.backward(loss);
    loss.reset();
    w.set_grad({});
    CHECK(memory_statistics().live_tensors == before.live_tensors + 1);  // w
  }
  CHECK(memory_statistics().live_tensors == before.live_tensors);
  CHECK(memory_statistics().live_storages == before.live_storages);
}

TEST_CASE("a value is saved only where a gradient will need it") {
  Tensor w = randn({1000}).requires_grad(), x = randn({1000});
  Tape tape;
  std::size_t empty = tape.bytes();
  Tensor a = w + x;
  CHECK(tape.bytes() - empty < 1000);
  Tensor b = w * x;  // needs x for w, but not w
  std::size_t one = tape.bytes() - empty;
  CHECK(one >= 4000);
  CHECK(one < 6000);
}

TEST_CASE("a source that the target does not depend on is an error, or zeros where asked for") {
  Tensor x = scalar(2), z = ones({2, 3}, {.dtype = f64});
  Tape tape({.persistent = true});
  tape.watch(x);
  tape.watch(z);
  Tensor y = x * x, other = z * z;
  CHECK_THAT(error_of<TapeError>([&] { tape.gradient(y, z); }), reel_test::contains("does not depend on source 0"));
  Tensor g = tape.gradient(y, z, {.unconnected = Unconnected::zeros});
  CHECK(g.shape() == z.shape());
  CHECK(sum(g).item() == 0);
}

TEST_CASE("an op may have more outputs than sixteen bits can count") {
  Tensor x = ones({65536});
  Tape tape;
  tape.watch(x);
  std::vector<Tensor> parts = split(x, 1);
  Tensor g = tape.gradient(sum(parts[0] * 3) + sum(x), x);
  CHECK(g.to_vector<float>()[0] == 4);
  CHECK(g.to_vector<float>()[1] == 1);
}

TEST_CASE("gradients of halves are added up in f32") {
  for (DType dtype : {bf16, f16}) {
    Tensor b = ones({1}, {.dtype = dtype}).requires_grad();
    Tape tape;
    Tensor total = zeros({});
    for (int i = 0; i < 1024; ++i) total = total + sum(to(b, f32) * 1.f);
    tape.backward(total);
    CHECK(b.grad().dtype() == dtype);
    CHECK(b.grad().item() == 1024);
  }
}

TEST_CASE("a listener changes no bit of a gradient, and sees the sums") {
  Tensor x = randn({1000}), a = randn({1000}), b = randn({1000});
  auto gradient = [&] {
    Tape tape;
    tape.watch(x);
    return tape.gradient(sum(x * a + x * b + x * a * b), x).to_vector<float>();
  };
  std::vector<float> alone = gradient();
  int sums = 0;
  debug::Listen listen([&](const debug::OpEvent& event) {
    sums += std::string_view(event.op).starts_with("accumulate");
    for (const Tensor* input : event.inputs)
      static_cast<void>(transpose(reshape(*input, {1, -1})) * 2.0);  // not reported
  });
  CHECK(gradient() == alone);
  CHECK(sums == 2);
}

TEST_CASE("a listener may read gradients while backward stores them") {
  Tensor x = full({}, 3.0).requires_grad();
  Tape tape;
  tape.backward(x * x);
  debug::Listen listen([&](const debug::OpEvent&) { static_cast<void>(x.grad()); });
  tape.backward(x * x);
  CHECK(x.grad().item() == 12);
}

TEST_CASE("values saved by several ops count once, parameters not at all") {
  Tensor w = randn({1000}).requires_grad(), x = randn({1000});
  Tape tape;
  for (int i = 0; i < 10; ++i) Tensor y = w * x;
  CHECK(tape.bytes() < 8000);
}

TEST_CASE("gradients of several sources never share elements") {
  Tensor a = tensor({1.0, 2.0}), b = tensor({3.0, 4.0});
  Tape tape;
  tape.watch(a);
  tape.watch(b);
  auto [ga, gb] = tape.gradient(sum(a + b), a, b);
  ga.write<double>()[0] = 7;
  CHECK(gb.to_vector<double>() == std::vector<double>{1, 1});
  CHECK(ga.to_vector<double>() == std::vector<double>{7, 1});
}

TEST_CASE("an exception in a forward op leaves the tape usable") {
  Tensor w = ones({2, 3}).requires_grad();
  Tape tape;
  Tensor h = w * 2.0;
  CHECK_THROWS_AS(matmul(h, ones({2, 2})), ShapeError);
  tape.backward(sum(h));
  CHECK(sum(w.grad()).item() == 12);
}

TEST_CASE("an exception in backward releases all gradients") {
  Tensor w = ones({1000}).requires_grad();
  std::size_t before = memory_statistics().live_bytes;
  {
    Tape tape;
    Tensor y = exp(w), loss = sum(y * 2);
    mul_(y, 2);
    CHECK_THROWS_AS(tape.backward(loss), TapeError);
  }
  CHECK(memory_statistics().live_bytes == before);
}

TEST_CASE("an exception in backward leaves every grad as it was") {
  Tensor a = scalar(2).requires_grad(), b = scalar(5).requires_grad();
  Tape tape;
  tape.backward(a * 1.0 + b * 1.0);
  Tensor h = a * b;
  Tensor y = tanh(h) * b;
  b.write<double>()[0] = 6;
  CHECK_THROWS_AS(tape.backward(y), TapeError);
  CHECK(a.grad().item() == 1);
  CHECK(b.grad().item() == 1);
  // The tape continues to record.
  tape.backward(a * 2.0);
  CHECK(a.grad().item() == 3);
}

TEST_CASE("a tape that grows past its limit warns once and names the lines that save most") {
  Tensor w = ones({1000}).requires_grad();
  int line = 0;
  std::string warning = printed_to_stderr([&] {
    Tape tape({.warn_bytes = 10000});
    Tensor h = w;
    line = __LINE__ + 1;
    for (int i = 0; i < 10; ++i) h = h * w;
    tape.backward(sum(h));
  });
  CHECK(w.grad().to_vector<float>()[0] == 11);
  CHECK_THAT(warning, reel_test::contains("without a backward"));
  CHECK_THAT(warning, reel_test::contains("tape_test.cpp:" + std::to_string(line)));
  CHECK(warning.find("reel: warning") == warning.rfind("reel: warning"));
}

TEST_CASE("backward of an inner tape adds detached gradients") {
  Tensor w = scalar(3).requires_grad();
  Tape outer;
  {
    Tape inner;
    inner.backward(w * w * w);
  }
  CHECK(w.grad().item() == 27);
  Tensor used = w.grad() * 2.0;
  CHECK_THROWS_AS(outer.gradient(used, w), TapeError);
}

TEST_CASE("integers cannot be watched, made parameters, or asked for gradients") {
  Tensor n = tensor({1, 2, 3});
  Tape tape;
  CHECK_THROWS_AS(tape.watch(n), DTypeError);
  CHECK_THROWS_AS(n.requires_grad(), DTypeError);
  Tensor x = scalar(1);
  tape.watch(x);
  CHECK_THROWS_AS(tape.gradient(x * 2.0, n), DTypeError);
}

TEST_CASE("the gradient of a parameter by itself is one") {
  Tensor w = full({}, 3.0).requires_grad(), v = full({2}, 3.0).requires_grad();
  {
    Tape tape;
    tape.backward(w);
    CHECK(w.grad().item() == 1);
    tape.backward(w * w);
    CHECK(w.grad().item() == 7);
    CHECK(tape.gradient(w, w).item() == 1);
    tape.backward(v, {.seed = tensor({2.f, 5.f})});
    CHECK(v.grad().to_vector<float>() == std::vector<float>{2, 5});
  }
  Tape outer;
  Tensor y = w * w;
  {
    Tape inner;
    inner.backward(w);
  }
  CHECK(w.grad().item() == 8);
  CHECK(outer.gradient(y, w).item() == 6);
}
