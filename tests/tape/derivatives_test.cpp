#include <reel/reel.h>

#include <cmath>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

Tensor normal(const Shape& shape) { return randn(shape, {.dtype = f64}); }

bool agree(const Tensor& a, const Tensor& b, double tolerance = 1e-12) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && all(abs(a - b) <= tolerance * (1 + abs(b))).item<bool>();
}

}  // namespace

TEST_CASE("the jacobian of an elementwise function is diagonal, and of a product its other factor") {
  Tensor x = normal({4}), w = normal({4, 3});
  CHECK(agree(jacobian([](const Tensor& x) { return sin(x); }, x), diag(cos(x))));
  auto [jx, jw] = jacobian([](const Tensor& x, const Tensor& w) { return matmul(x, w); }, {x, w});
  CHECK(agree(jx, transpose(w)));
  // ∂y_o / ∂w_ab = x_a [b = o]
  CHECK(agree(jw, reshape(eye(3, {.dtype = f64}), {3, 1, 3}) * reshape(x, {1, 4, 1})));
}

TEST_CASE("a jacobian has the shape of the output and then the input's") {
  Tensor x = normal({2, 3}), w = normal({3, 4});
  Tensor j = jacobian([&](const Tensor& x) { return matmul(x, w); }, x);
  CHECK(j.shape() == Shape{2, 4, 2, 3});
  Tensor expected = reshape(eye(2, {.dtype = f64}), {2, 1, 2, 1}) * reshape(transpose(w), {1, 4, 1, 3});
  CHECK(agree(j, expected));
  CHECK(jacobian([](const Tensor& x) { return sum(x); }, x).shape() == Shape{2, 3});
  CHECK(
      jacobian([](const Tensor& x) { return x * ones({2}, {.dtype = f64}); }, full({}, 3.0, {.dtype = f64})).shape() ==
      Shape{2});
  CHECK(jacobian([](const Tensor& x) { return x; }, full({}, 3.0)).shape() == Shape{});
}

TEST_CASE("the hessian of a quadratic form is its matrix made symmetric, in blocks") {
  Tensor x = normal({3}), y = normal({2}), a = normal({3, 3}), b = normal({3, 2});
  Tensor h = hessian([&](const Tensor& x) { return sum(x * matmul(a, x)); }, x);
  CHECK(agree(h, a + transpose(a)));
  auto blocks =
      hessian([&](const Tensor& x, const Tensor& y) { return sum(x * matmul(a, x)) + sum(x * matmul(b, y)); }, {x, y});
  CHECK(agree(blocks[0][0], a + transpose(a)));
  CHECK(agree(blocks[0][1], b));
  CHECK(agree(blocks[1][0], transpose(b)));
  CHECK(agree(blocks[1][1], zeros({2, 2}, {.dtype = f64})));
}

TEST_CASE("functions of a span take any number of inputs") {
  std::vector<Tensor> inputs;
  for (int i = 0; i < 5; ++i) inputs.push_back(normal({2}));
  TensorFunction f = [](std::span<const Tensor> in) {
    Tensor product = in[0];
    for (const Tensor& factor : in.subspan(1)) product = product * factor;
    return sum(product);
  };
  std::vector<Tensor> j = jacobian(f, inputs);
  REQUIRE(j.size() == 5);
  CHECK(agree(j[2], inputs[0] * inputs[1] * inputs[3] * inputs[4]));
  std::vector<std::vector<Tensor>> h = hessian(f, inputs);
  CHECK(agree(h[1][3], diag(inputs[0] * inputs[2] * inputs[4])));
  auto [value, product] = hvp(f, inputs, inputs);
  CHECK(agree(value, f(inputs)));
  CHECK(agree(product[0], j[0] * 4.0));
  CHECK(agree(jvp(f, inputs, inputs).product, 5.0 * value));
  CHECK(agree(vjp(f, inputs, full({}, 2.0, {.dtype = f64})).product[4], 2.0 * j[4]));
}

TEST_CASE("hvp, vjp and jvp are the products with the hessian and the jacobian") {
  Tensor x = normal({3, 2}), w = normal({2, 4}), v = normal({3, 2}), u = normal({2, 4}), seed = normal({3, 4});
  auto f = [](const Tensor& x, const Tensor& w) { return tanh(matmul(x, w)) * exp(mean(x)); };
  auto [jx, jw] = jacobian(f, {x, w});
  Tensor y = f(x, w);

  auto back = vjp(f, {x, w}, seed);
  CHECK(agree(back.value, y));
  Tensor row = reshape(seed, {1, 12});
  CHECK(agree(back.product[0], reshape(matmul(row, reshape(jx, {12, 6})), {3, 2})));
  CHECK(agree(back.product[1], reshape(matmul(row, reshape(jw, {12, 8})), {2, 4})));

  auto [value, along] = jvp(f, {x, w}, {v, u});
  CHECK(agree(value, y));
  Tensor expected = matmul(reshape(jx, {12, 6}), reshape(v, {6})) + matmul(reshape(jw, {12, 8}), reshape(u, {8}));
  CHECK(agree(along, reshape(expected, {3, 4})));

  auto loss = [&](const Tensor& x, const Tensor& w) { return sum(square(f(x, w))); };
  auto h = hessian(loss, {x, w});
  auto [total, product] = hvp(loss, {x, w}, {v, u});
  CHECK(agree(total, loss(x, w)));
  Tensor hx = matmul(reshape(h[0][0], {6, 6}), reshape(v, {6})) + matmul(reshape(h[0][1], {6, 8}), reshape(u, {8}));
  Tensor hw = matmul(reshape(h[1][0], {8, 6}), reshape(v, {6})) + matmul(reshape(h[1][1], {8, 8}), reshape(u, {8}));
  CHECK(agree(product[0], reshape(hx, {3, 2})));
  CHECK(agree(product[1], reshape(hw, {2, 4})));
}

TEST_CASE(
    "batch_jacobian gives the diagonal blocks of the jacobian, in one backward pass for each output of an example") {
  Tensor x = normal({5, 3}), w = normal({3, 2, 2});
  auto f = [&](const Tensor& x) { return tanh(reshape(matmul(x, reshape(w, {3, 4})), {5, 2, 2})); };
  Tensor whole = jacobian(f, x), blocks = batch_jacobian(f, x);
  REQUIRE(blocks.shape() == Shape{5, 2, 2, 3});
  for (int n = 0; n < 5; ++n) CHECK(agree(blocks(n), whole(n, slice(), slice(), n)));

  int products = 0;
  debug::Listen listen(
      [&](const debug::OpEvent& event) { products += std::string_view(event.op).starts_with("matmul"); });
  batch_jacobian(f, x);
  CHECK(products == 1 + 4);
}

TEST_CASE("a tape gives jacobians too, for any tensors on it") {
  Tensor x = normal({4}), w = normal({4}).requires_grad();
  Tape tape({.persistent = true});
  tape.watch(x);
  Tensor h = x * w, y = square(h);
  std::vector<Tensor> j = tape.jacobian(y, {x, w, h});
  CHECK(agree(j[0], diag(2.0 * h * w)));
  CHECK(agree(j[1], diag(2.0 * h * x)));
  CHECK(agree(j[2], diag(2.0 * h)));
  CHECK(agree(tape.jacobian(y, y), eye(4, {.dtype = f64})));
  CHECK(agree(tape.batch_jacobian(y, x), 2.0 * h * w));
  Tensor other = normal({2});
  tape.watch(other);
  CHECK_THAT(error_of<TapeError>([&] { tape.jacobian(y, other); }), contains("jacobian: the target (4,) f64 does not"));
  CHECK(agree(tape.jacobian(y, other, {.unconnected = Unconnected::zeros}), zeros({4, 2}, {.dtype = f64})));
  Tensor rows = normal({4, 3});
  tape.watch(rows);
  CHECK_THAT(error_of<TapeError>([&] { tape.batch_jacobian(y, rows); }),
             contains("batch_jacobian: the target (4,) f64 does not"));
  CHECK(agree(tape.batch_jacobian(y, rows, {.unconnected = Unconnected::zeros}), zeros({4, 3}, {.dtype = f64})));
}

TEST_CASE("a tape that is not persistent is consumed by a jacobian") {
  Tensor x = normal({3});
  Tape tape;
  tape.watch(x);
  Tensor y = x * x;
  CHECK_THROWS_AS(tape.jacobian(y, normal({3})), TapeError);
  Tensor j = tape.jacobian(y, x);
  CHECK(tape.size() == 0);
  CHECK(agree(j, diag(2.0 * x)));
  CHECK_THAT(error_of<TapeError>([&] { tape.jacobian(y, x, {.unconnected = Unconnected::zeros}); }),
             contains("has been differentiated already"));
}

TEST_CASE("derivatives are by the arguments alone, whatever else the function uses") {
  Tensor w = normal({3}).requires_grad(), x = normal({3});
  // x is an argument, and captured as well.
  CHECK(agree(jacobian([&](const Tensor& a) { return a * w * x; }, x), diag(w * x)));
  CHECK(agree(jacobian([](const Tensor& a, const Tensor& b) { return a * b; }, {x, x})[0], diag(x)));
  CHECK(agree(jacobian([&](const Tensor& a) { return a * x; }, w), diag(x)));
  CHECK_FALSE(w.grad().defined());
  CHECK(w.is_parameter());

  Tape tape;
  tape.watch(x);
  Tensor h = x * w;
  CHECK(agree(jacobian([&](const Tensor& a) { return a * h; }, x), diag(h)));
  CHECK(agree(tape.gradient(sum(h), x), w));
}

TEST_CASE("a function that gives its argument or a constant has derivatives one and zero") {
  Tensor x = normal({2}), w = normal({3}).requires_grad(), k = normal({3});
  auto identity = [](const Tensor& x) { return x; };
  auto check = [&] {
    CHECK(agree(jacobian(identity, x), eye(2, {.dtype = f64})));
    CHECK(agree(jvp(identity, x, x).product, x));
    CHECK(agree(vjp(identity, x, x).product, x));
    CHECK(agree(batch_jacobian(identity, x), ones({2}, {.dtype = f64})));
    Tensor older = w * 2.0;
    for (const Tensor& constant : {k, w, older}) {
      auto f = [&](const Tensor&) { return constant; };
      CHECK(agree(jacobian(f, x), zeros({3, 2}, {.dtype = f64})));
      CHECK(agree(vjp(f, x, k).product, zeros({2}, {.dtype = f64})));
      CHECK(agree(jvp(f, x, x).product, zeros({3}, {.dtype = f64})));
      auto total = [&](const Tensor&) { return sum(constant); };
      CHECK(agree(hessian(total, x), zeros({2, 2}, {.dtype = f64})));
      CHECK(agree(hvp(total, x, x).product, zeros({2}, {.dtype = f64})));
    }
    auto linear = [](const Tensor& x) { return sum(x); };
    CHECK(agree(hessian(linear, x), zeros({2, 2}, {.dtype = f64})));
    CHECK(agree(hvp(linear, x, x).product, zeros({2}, {.dtype = f64})));
  };
  check();
  Tape outer;
  outer.watch(x);
  check();
}

TEST_CASE("outer tapes record what the functions give: by inputs, captured tensors, seeds and directions") {
  Tensor x = normal({3}), w = normal({3}).requires_grad(), v = normal({3});
  auto f = [&](const Tensor& x) { return x * x * x * w; };
  auto total = [&](const Tensor& x) { return sum(f(x)); };
  Tape tape({.persistent = true});
  tape.watch(x);
  tape.watch(v);
  // J = diag(3 x² w)
  Tensor j = sum(jacobian(f, x));
  CHECK(agree(tape.gradient(j, x), 6.0 * x * w));
  CHECK(agree(tape.gradient(j, w), 3.0 * x * x));
  Tensor h = sum(hessian(total, x));
  CHECK(agree(tape.gradient(h, x), 6.0 * w));
  CHECK(agree(tape.gradient(h, w), 6.0 * x));
  auto [value, product] = hvp(total, x, v);
  CHECK(agree(tape.gradient(value, x), 3.0 * x * x * w));
  CHECK(agree(tape.gradient(sum(product), v), 6.0 * x * w));
  CHECK(agree(tape.gradient(sum(product), x), 6.0 * w * v));
  Tensor back = sum(vjp(f, x, v).product);
  CHECK(agree(tape.gradient(back, v), 3.0 * x * x * w));
  CHECK(agree(tape.gradient(back, x), 6.0 * x * w * v));
  Tensor along = sum(jvp(f, x, v).product);
  CHECK(agree(tape.gradient(along, v), 3.0 * x * x * w));
  CHECK(agree(tape.gradient(along, w), 3.0 * x * x * v));
  Tensor blocks = sum(batch_jacobian(f, x));
  CHECK(agree(tape.gradient(blocks, x), 6.0 * x * w));
}

TEST_CASE("what the functions give is a plain value where no tape is open") {
  Tensor x = normal({3});
  auto [value, product] = vjp([](const Tensor& x) { return x * x; }, x, x);
  auto second = hvp([](const Tensor& x) { return sum(x * x); }, x, x);
  auto along = jvp([](const Tensor& x) { return x * x; }, x, x);
  Tape tape;
  tape.watch(x);
  Tensor y = x * value * product * second.product * along.product * second.value * along.value;
  CHECK(tape.gradient(sum(y), x).defined());
}

TEST_CASE("jacobians nest to third derivatives") {
  Tensor x = normal({2});
  auto f = [](const Tensor& x) { return exp(2.0 * x) * sum(x); };
  auto first = [&](const Tensor& x) { return jacobian(f, x); };
  auto second = [&](const Tensor& x) { return jacobian(first, x); };
  Tensor j = first(x), third = jacobian(second, x);
  REQUIRE(third.shape() == Shape{2, 2, 2, 2});
  // f_o = e^(2 x_o) s: each derivative by x_o gives 2 or ends s, each other one only ends s.
  Tensor e = exp(2.0 * x), s = sum(x);
  CHECK(agree(j, diag(2.0 * e * s) + unsqueeze(e, 1) * ones({2, 2}, {.dtype = f64})));
  CHECK(agree(third(0, 0, 0, 0), e(0) * (8.0 * s + 12.0)));
  CHECK(agree(third(0, 0, 0, 1), e(0) * 4.0));
  CHECK(agree(third(0, 0, 1, 1), zeros({}, {.dtype = f64})));
}

TEST_CASE("jacobians of empty tensors, of views, of 0-d ones and of 8 axes are what they should be") {
  auto f = [](const Tensor& x) { return x * 2.0; };
  Tensor x = normal({3, 2});
  CHECK(jacobian([](const Tensor& x) { return slice(x, 0, 0, 0); }, x).shape() == Shape{0, 2, 3, 2});
  CHECK(jacobian([](const Tensor& x) { return sum(x, 1); }, normal({2, 0})).shape() == Shape{2, 2, 0});
  CHECK(batch_jacobian(f, normal({0, 2})).shape() == Shape{0, 2, 2});
  CHECK(agree(jacobian(f, transpose(x)), reshape(2.0 * eye(6, {.dtype = f64}), {2, 3, 2, 3})));
  CHECK(agree(jacobian(f, expand(normal({1, 2}), {2, 2})), reshape(2.0 * eye(4, {.dtype = f64}), {2, 2, 2, 2})));
  CHECK(agree(hessian([](const Tensor& x) { return x * x * x; }, full({}, 2.0, {.dtype = f64})),
              full({}, 12.0, {.dtype = f64})));
  Tensor deep = normal({1, 2, 1, 1, 2, 1, 1, 1});
  auto total = [](const Tensor& x) { return sum(x * x); };
  CHECK(agree(jacobian(total, deep), 2.0 * deep));
  Tape tape;
  tape.watch(deep);
  Tensor j = jacobian(total, deep);
  CHECK(agree(stop_gradient(j), 2.0 * stop_gradient(deep)));
  CHECK(jacobian([](const Tensor& x) { return slice(x, 0, 0, 0); }, x).shape() == Shape{0, 2, 3, 2});
  CHECK(agree(tape.gradient(sum(j), deep), full(deep.shape(), 2.0, {.dtype = f64})));
}

TEST_CASE("derivatives have the dtype of their input") {
  for (DType dtype : {f16, bf16, f32, f64}) {
    Tensor x = tensor({1.0, -2.0, 0.5}), h = to(x, dtype);
    auto f = [](const Tensor& x) { return x * x * x; };
    CHECK(agree(jacobian(f, h), to(diag(3.0 * x * x), dtype)));
    CHECK(agree(hessian([&](const Tensor& x) { return sum(f(x)); }, h), to(diag(6.0 * x), dtype)));
    CHECK(jvp(f, h, h).product.dtype() == dtype);
    CHECK(jacobian([](const Tensor& x) { return to(x, f64) * 2.0; }, h).dtype() == dtype);
  }
}

TEST_CASE("a row gradient of a table fills its rows of the jacobian") {
  Tensor table = normal({4, 2}), indices = tensor({2L, 0L, 2L});
  Tensor j = jacobian([&](const Tensor& table) { return embedding(table, indices, {.row_gradient = true}); }, table);
  Tensor picked = one_hot(indices, 4, f64);
  CHECK(agree(j, reshape(picked, {3, 1, 4, 1}) * reshape(eye(2, {.dtype = f64}), {1, 2, 1, 2})));
}

TEST_CASE("a jacobian by columns is that by rows, also within an outer tape") {
  Tensor x = normal({2}), w = normal({2, 3});
  auto f = [](const Tensor& x, const Tensor& w) { return tanh(matmul(x, w)) * sum(x * x); };
  auto [by_row_x, by_row_w] = jacobian(f, {x, w});
  auto [by_column_x, by_column_w] = jacobian(f, {x, w}, {.forward = true});
  CHECK(agree(by_row_x, by_column_x));
  CHECK(agree(by_row_w, by_column_w));
  CHECK(jacobian([](const Tensor&) { return ones({4}, {.dtype = f64}); }, x, {.forward = true}).shape() == Shape{4, 2});
  CHECK(jacobian([](const Tensor& x) { return sum(x * x); }, x, {.forward = true}).shape() == Shape{2});
  Tensor gradients[2];
  for (bool forward : {false, true}) {
    Tape tape;
    tape.watch(x);
    Tensor j = jacobian([&](const Tensor& x) { return tanh(matmul(x, w)); }, x, {.forward = forward});
    gradients[forward] = tape.gradient(sum(j * j), x);
  }
  CHECK(agree(gradients[0], gradients[1]));
}
