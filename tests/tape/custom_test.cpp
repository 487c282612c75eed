#include <reel/reel.h>

#include <cmath>

#include "catch.h"
#include "tape/nested.h"

using namespace reel;
using namespace reel_test;

namespace {

Tensor scaled(const Arg& x, double factor) {
  return custom_gradient([](const Tensor& x) { return x; }, [=](const Tensor& dy) { return factor * dy; }, x);
}
Tensor straight_through_round(const Arg& x) {
  return custom_gradient([](const Tensor& x) { return round(x); }, [](const Tensor& dy) { return dy; }, x);
}
Tensor reversed(const Arg& x) {
  return custom_gradient([](const Tensor& x) { return x; }, [](const Tensor& dy) { return -dy; }, x);
}

// x³ by x and by y
Tensor cube(const Arg& x) {
  return custom_gradient([](const Tensor& x) { return x * x * x; },
                         [](const Tensor& dy, const Tensor& x) { return 3 * dy * x * x; }, x);
}
Tensor exponential(const Arg& x) {
  return custom_gradient(
      "exponential", [](const Tensor& x) { return exp(x); },
      [](const Tensor& dy, const Tensor& y, const Tensor&) { return dy * y; }, x);
}

struct Spike {
  static constexpr const char* name = "spike";
  double width = 1;
  struct Saved {
    Tensor x;
  };
  Tensor forward(Saved& saved, const Tensor& x) const {
    saved.x = x;
    return to(x > 0, x.dtype());
  }
  Tensor gradient(const Saved& saved, const Tensor& dy) const {
    return dy * clamp(1 - abs(saved.x) / width, 0, 1) / width;
  }
};

// a b², saving inputs, outputs and other tensors
struct Weighted {
  double factor = 1;
  struct Saved {
    Tensor a;
    std::array<std::int64_t, 3> sizes;
    Tensor missing;
    Tensor b;
    double factor;
    bool flag;
    Tensor mask;
    Tensor constant;
  };
  Tensor forward(Saved& saved, const Tensor& a, const Tensor& b) const {
    saved = {a, {1, 2, 3}, {}, b, factor, true, b > 0, stop_gradient(full({}, 2.0, {.dtype = f64}))};
    return factor * a * b * b;
  }
  std::array<Tensor, 2> gradient(const Saved& saved, const Tensor& dy) const {
    if (saved.missing.defined() || saved.sizes[2] != 3 || !saved.flag || saved.factor != factor) return {};
    Tensor b = where(saved.mask, saved.b, saved.b);
    return {factor * dy * b * b, factor * dy * saved.a * b * saved.constant};
  }
};

// (sin x, cos x)
struct SineCosine {
  static constexpr const char* name = "sine_cosine";
  struct Saved {
    Tensor sine, cosine;
  };
  std::array<Tensor, 2> forward(Saved& saved, const Tensor& x) const {
    saved = {sin(x), cos(x)};
    return {saved.sine, saved.cosine};
  }
  Tensor gradient(const Saved& saved, const std::array<Tensor, 2>& dy) const {
    return dy[0] * saved.cosine - dy[1] * saved.sine;
  }
};

// a b, computing only the gradients that are needed
struct Product {
  struct Saved {
    Tensor a, b;
  };
  Tensor forward(Saved& saved, const Tensor& a, const Tensor& b) const {
    saved = {a, b};
    return a * b;
  }
  std::array<Tensor, 2> gradient(const Saved& saved, const Tensor& dy, Wanted wanted) const {
    std::array<Tensor, 2> given;
    if (wanted[0]) given[0] = dy * saved.b;
    if (wanted[1]) given[1] = dy * saved.a;
    return given;
  }
};

// 2 x, saving nothing
struct Double {
  Tensor forward(const Tensor& x) const { return 2 * x; }
  Tensor gradient(const Tensor& dy) const { return 2 * dy; }
};

// A root of z = tanh(a z + x), differentiated by the implicit function theorem with a tape of its own.
struct FixedPoint {
  static constexpr const char* name = "fixed_point";
  double a = 0.5;
  struct Saved {
    Tensor z, x;
  };
  Tensor forward(Saved& saved, const Tensor& x) const {
    Tensor z = zeros_like(x);
    for (int i = 0; i < 200; ++i) z = tanh(a * z + x);
    saved = {z, x};
    return z;
  }
  Tensor gradient(const Saved& saved, const Tensor& dy) const {
    Tensor z = stop_gradient(saved.z), x = stop_gradient(saved.x);
    Tape tape;
    tape.watch(z);
    Tensor slope = tape.gradient(tanh(a * z + x), z, {.seed = ones_like(z)});
    return dy * (slope / a) / (1 - slope);
  }
};

Tensor values() { return tensor({0.3, -0.7, 1.6, 2.4}); }

}  // namespace

TEST_CASE("gradient scaling, straight through and reversal are one line each") {
  Tensor x = values();
  Tape tape;
  tape.watch(x);
  Tensor w = tensor({1.0, 2.0, 3.0, 4.0});
  CHECK(scaled(x, 10).to_vector<double>() == x.to_vector<double>());
  CHECK(tape.gradient(sum(w * scaled(x, 10)), x).to_vector<double>() == std::vector<double>{10, 20, 30, 40});
  tape.watch(x);
  CHECK(straight_through_round(x).to_vector<double>() == std::vector<double>{0, -1, 2, 2});
  CHECK(tape.gradient(sum(w * straight_through_round(x)), x).to_vector<double>() == w.to_vector<double>());
  tape.watch(x);
  CHECK(tape.gradient(sum(w * reversed(x)), x).to_vector<double>() == std::vector<double>{-1, -2, -3, -4});
}

TEST_CASE("custom gradients that take x, or y and x, pass the checks of first and second order") {
  for (Tensor (*f)(const Arg&) : {cube, exponential}) {
    auto function = [f](std::span<const Tensor> in) { return sum(sin(f(in[0]))); };
    CHECK(debug::gradcheck(function, {values()}).agrees);
    CHECK(debug::gradgradcheck(function, {values()}).agrees);
  }
}

TEST_CASE("custom gradients have third derivatives") {
  Tensor x = full({}, 0.4, {.dtype = f64});
  for (Tensor (*f)(const Arg&) : {cube, exponential}) {
    double expected = f == cube ? 24 * 0.4 : std::exp(0.4) * (0.4 + 3);
    CHECK(third_derivative([f](const Tensor& x) { return f(x) * x; }, x).item() == Approx(expected));
  }
}

TEST_CASE("a struct op has attributes, and is named in events at its caller's line") {
  Tensor x = tensor({0.5, -0.5, 3.0}).requires_grad();
  Tape tape;
  std::vector<std::string> seen;
  int line = 0;
  {
    debug::Listen listen([&](const debug::OpEvent& event) {
      if (std::string(event.op) == "spike") seen.push_back(to_string(event.where));
    });
    line = __LINE__ + 1;
    Tensor s = apply(Spike{.width = 2}, x);
    CHECK(s.to_vector<double>() == std::vector<double>{1, 0, 1});
    CHECK_THAT(to_string(s.made_at()), contains("custom_test.cpp:" + std::to_string(line)));
    CHECK(tape.size() == 1);
    tape.backward(sum(s));
  }
  CHECK(x.grad().to_vector<double>() == std::vector<double>{0.375, 0.375, 0});
  REQUIRE(seen.size() == 1);
  CHECK_THAT(seen[0], contains("custom_test.cpp:" + std::to_string(line)));
}

TEST_CASE("a struct op saves eight members: tensors, plain data, and tensors that are not there") {
  auto function = [](std::span<const Tensor> in) { return sum(sin(apply(Weighted{.factor = 3}, in[0], in[1]))); };
  Tensor b = tensor({0.2, -1.1, 0.4, 0.9});
  CHECK(debug::gradcheck(function, {values(), b}).agrees);
  CHECK(debug::gradgradcheck(function, {values(), b}).agrees);
}

TEST_CASE("several results and their saved values are differentiated to third order") {
  auto function = [](std::span<const Tensor> in) {
    auto [s, c] = apply(SineCosine{}, in[0]);
    return sum(s * s * s + 2 * c * in[0]);
  };
  CHECK(debug::gradcheck(function, {values()}).agrees);
  CHECK(debug::gradgradcheck(function, {values()}).agrees);
  // Only one of them is used.
  Tensor x = values();
  Tape tape;
  tape.watch(x);
  Tensor g = tape.gradient(sum(apply(SineCosine{}, x)[1]), x);
  CHECK(g.to_vector<double>()[0] == Approx(-std::sin(0.3)));
}

TEST_CASE("the lambda form takes several inputs and gives several results") {
  auto function = [](std::span<const Tensor> in) {
    auto [p, q] = custom_gradient(
        "product_and_sum",
        [](const Tensor& a, const Tensor& b) {
          return std::array{a * b, a + b};
        },
        [](const std::array<Tensor, 2>& d, const Tensor& a, const Tensor& b) {
          return std::array{d[0] * b + d[1], d[0] * a + d[1]};
        },
        in[0], in[1]);
    return sum(p * exp(q));
  };
  Tensor b = tensor({0.2, -1.1, 0.4, 0.9});
  CHECK(debug::gradcheck(function, {values(), b}).agrees);
  CHECK(debug::gradgradcheck(function, {values(), b}).agrees);
}

TEST_CASE("a gradient of the result's shape is summed over the axes along which the input was broadcast") {
  auto function = [](std::span<const Tensor> in) {
    return sum(custom_gradient([](const Tensor& a, const Tensor& b) { return a + b; },
                               [](const Tensor& dy) {
                                 return std::vector{dy, dy};
                               },
                               in[0], in[1]));
  };
  CHECK(debug::gradcheck(function, {randn({3, 4}, {.dtype = f64}), values()}).agrees);
}

TEST_CASE("only the gradients that are wanted need to be computed") {
  Tensor x = values(), w = values().requires_grad();
  Tape tape;
  std::size_t products = 0;
  Tensor y = sum(apply(Product{}, x, w));
  debug::Listen listen([&](const debug::OpEvent& event) { products += std::string(event.op) == "mul"; });
  tape.backward(y);
  CHECK(products == 1);
  CHECK(w.grad().to_vector<double>() == x.to_vector<double>());
}

TEST_CASE("an op without saved values needs no struct for them") {
  auto function = [](std::span<const Tensor> in) { return sum(apply(Double{}, in[0]) * in[0]); };
  CHECK(debug::gradcheck(function, {values()}).agrees);
  CHECK(debug::gradgradcheck(function, {values()}).agrees);
}

TEST_CASE("a gradient function may open a tape of its own, in first and in higher order") {
  auto function = [](std::span<const Tensor> in) { return sum(square(apply(FixedPoint{}, in[0]))); };
  CHECK(debug::gradcheck(function, {values()}).agrees);
}

TEST_CASE("a gradient that a gradient function's own tape recorded is an ordinary tensor") {
  Tensor x = tensor({1.f, 2.f});
  auto squares = [](const Tensor& dy) {
    Tensor d = dy * 1;
    Tape tape;
    tape.watch(d);
    return d * d;
  };
  Tensor dx;
  {
    Tape tape;
    tape.watch(x);
    dx = tape.gradient(sum(custom_gradient([](const Tensor& x) { return 2 * x; }, squares, x)), x);
  }
  Tape tape;
  tape.watch(x);
  CHECK(tape.gradient(sum(x * dx), x).to_vector<float>() == std::vector<float>{1, 1});
}

TEST_CASE("a forward may open a tape of its own") {
  auto derivative = [](const Tensor& x) {
    return custom_gradient(
        [](const Tensor& x) {
          Tape tape;
          tape.watch(x);
          return tape.gradient(sum(x * x * x), x);
        },
        [](const Tensor& dy, const Tensor& x) { return 6 * dy * x; }, x);
  };
  auto function = [&](std::span<const Tensor> in) { return sum(derivative(in[0])); };
  CHECK(debug::gradcheck(function, {values()}).agrees);
  CHECK(debug::gradgradcheck(function, {values()}).agrees);
  CHECK(derivative(values()).to_vector<double>()[3] == Approx(3 * 2.4 * 2.4));
}

TEST_CASE("custom gradients nest, and a tensor may be saved that an inner one has made") {
  auto function = [](std::span<const Tensor> in) {
    return sum(custom_gradient([](const Tensor& x) { return cube(cube(x)); },
                               [](const Tensor& dy, const Tensor& x) { return 9 * dy * pow(x, 8); }, in[0]));
  };
  CHECK(debug::gradcheck(function, {values()}).agrees);
  CHECK(debug::gradgradcheck(function, {values()}).agrees);
}

TEST_CASE("without a tape, and where nothing is tracked, a custom gradient is its forward") {
  Tensor x = values();
  CHECK(cube(x).to_vector<double>()[0] == Approx(0.027));
  Tape tape;
  Tensor y = cube(x);
  CHECK(tape.size() == 0);
  Tensor z = y * 2;
  CHECK(tape.size() == 0);
  CHECK_THROWS_AS(tape.watch(x), TapeError);
  Tensor watched = stop_gradient(x);
  tape.watch(watched);
  NoRecord pause;
  CHECK(cube(watched).to_vector<double>()[0] == Approx(0.027));
  CHECK(tape.size() == 0);
}

TEST_CASE("an undefined gradient says that none flows") {
  Tensor a = values(), b = values();
  Tape tape;
  tape.watch(a);
  tape.watch(b);
  Tensor y = custom_gradient([](const Tensor& a, const Tensor& b) { return a * b; },
                             [](const Tensor& dy) {
                               return std::array<Tensor, 2>{dy, Tensor{}};
                             },
                             a, b);
  auto [ga, gb] = tape.gradient(sum(y), a, b);
  CHECK(sum(ga).item() == 4);
  CHECK(sum(abs(gb)).item() == 0);
}

TEST_CASE("a forward that returns its input, a view of it, or a constant leaves them as they were") {
  Tensor x = values(), constant = ones({4}, {.dtype = f64});
  Tape tape({.persistent = true});
  tape.watch(x);
  auto times_three = [](const Tensor& dy) { return 3 * reshape(dy, {4}); };
  Tensor same = custom_gradient([](const Tensor& x) { return x; }, times_three, x);
  Tensor view = custom_gradient([](const Tensor& x) { return reshape(x, {2, 2}); }, times_three, x);
  Tensor fixed = custom_gradient([&](const Tensor&) { return constant; }, times_three, x);
  for (const Tensor& y : {same, view, fixed})
    CHECK(tape.gradient(sum(y), x).to_vector<double>() == std::vector<double>(4, 3));
  CHECK_FALSE(same.is(x));
  Tensor square_of_same = sum(same * x);
  CHECK(tape.gradient(square_of_same, x).to_vector<double>()[0] == Approx(4 * 0.3));
  CHECK_THROWS_AS(tape.gradient(sum(constant), x), TapeError);
}

TEST_CASE("integer results stand beside floating ones") {
  Tensor x = values();
  Tape tape;
  tape.watch(x);
  auto [y, sign] = custom_gradient(
      [](const Tensor& x) {
        return std::array{abs(x), to(x > 0, i64)};
      },
      [](const std::array<Tensor, 2>& d, const std::array<Tensor, 2>& y, const Tensor& x) {
        return d[0] * to(2 * y[1] - 1, x.dtype());
      },
      x);
  CHECK(tape.gradient(sum(y), x).to_vector<double>() == std::vector<double>{1, -1, 1, 1});
  CHECK(sum(sign).item() == 3);
}

TEST_CASE("a custom gradient on a persistent tape can be asked for several times") {
  Tensor x = values();
  Tape tape({.persistent = true});
  tape.watch(x);
  Tensor y = sum(cube(x));
  CHECK(tape.gradient(y, x).to_vector<double>() == tape.gradient(y, x).to_vector<double>());
}
