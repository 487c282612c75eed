#include <reel/reel.h>

#include <cmath>
#include <string>
#include <vector>

#include "ops/bad_input.h"
#include "ops/numbers.h"

namespace reel_test {

using namespace reel;

namespace {

const Tensor undefined, m = zeros({2, 3}), v = zeros({4}), number = zeros({}), places = zeros({2, 3}, {.dtype = i64}),
                        list = tensor({0, 1}), mask = m > 0;

using Doubles = std::vector<double>;

}  // namespace

TEST_CASE("masks and index tensors select and write elements") {
  Tensor x = reshape(arange(12, {.dtype = f64}), {3, 4}), i = tensor({2, 0}), j = tensor({1, -1});
  CHECK(x(i, j).to_vector<double>() == Doubles{9, 3});
  CHECK(x(i).shape() == Shape{2, 4});
  CHECK(x(x > 8.0).to_vector<double>() == Doubles{9, 10, 11});
  CHECK(x(slice(), j).shape() == Shape{3, 2});
  CHECK(x(i, newaxis, slice(0, 3), newaxis).shape() == Shape{2, 1, 3, 1});
  x(x > 8.0) = 0;
  CHECK(x(2).to_vector<double>() == Doubles{8, 0, 0, 0});
  x(i, j) = doubles({-1, -2});
  CHECK(x(2, 1).item() == -1);
  CHECK(x(0, 3).item() == -2);
  x(i) += 100;
  CHECK(x(1).to_vector<double>() == Doubles{4, 5, 6, 7});
  CHECK(x(2).to_vector<double>() == Doubles{108, 99, 100, 100});
  auto part = x(0, tensor({true, false, false, true}));
  copy_(part, doubles({7, 8}));
  CHECK(x(0).to_vector<double>() == Doubles{7, 101, 102, 8});
  CHECK(part.to_vector<double>() == Doubles{7, 8});
  Tensor row = x(1);
  x(1, i) = row(slice(0, 2));
  CHECK(x(1).to_vector<double>() == Doubles{5, 5, 4, 7});
}

TEST_CASE("a number that is selected has an axis for its mask") {
  Tensor x = doubles({5, 6});
  CHECK(x(tensor({true})(0)).shape() == Shape{1, 2});
  CHECK(x(tensor({false})(0)).shape() == Shape{0, 2});
  CHECK(full({}, 3)(tensor({true})(0)).to_vector<float>() == std::vector<float>{3});
  x(tensor({true})(0)) = 1;
  CHECK(x.to_vector<double>() == Doubles{1, 1});
  x(tensor({false})(0)) = 2;
  CHECK(x.to_vector<double>() == Doubles{1, 1});
}

TEST_CASE("of several values for one position the last one is written, once") {
  Tensor x = zeros({3}, {.dtype = f64}), i = tensor({1, 1, 0});
  x(i) = doubles({1, 2, 3});
  CHECK(x.to_vector<double>() == Doubles{3, 2, 0});
  x(i) += 1;
  CHECK(x.to_vector<double>() == Doubles{4, 3, 0});
}

TEST_CASE("an integer tensor takes what is written to a selection, converted") {
  Tensor x = tensor({1, 2, 3});
  x(x > 1) = doubles({7.9, -3.2});
  CHECK(x.to_vector<int>() == std::vector<int>{1, 7, -3});
  Tensor flags = tensor({true, false});
  flags(list) = tensor({0, 5});
  CHECK(flags.to_vector<bool>() == std::vector<bool>{false, true});
}

TEST_CASE("gradients flow through what is written to a selection, and not past it") {
  Tensor x = doubles({1, 2, 3, 4}), y = doubles({5, 6});
  Tape tape({.persistent = true});
  tape.watch(x);
  tape.watch(y);
  Tensor h = x * 1.0;
  h(x > 2.0) = y * y;
  Tensor loss = sum(h * h);
  auto [dx, dy] = tape.gradient(loss, x, y);
  CHECK(dx.to_vector<double>() == Doubles{2, 4, 0, 0});
  CHECK(dy.to_vector<double>() == Doubles{500, 864});
  Tensor selected = h(tensor({3, 0, 3}));
  CHECK(tape.gradient(sum(selected), y).to_vector<double>() == Doubles{0, 24});
}

TEST_CASE("a selection of what is watched, or is needed by a gradient, is written as any part is") {
  Tensor x = doubles({1, 2, 3});
  {
    Tape tape;
    tape.watch(x);
    CHECK_THAT(error_of<TapeError>([&] { x(x > 1.0) = 0; }), contains("index_assign_: "));
    CHECK_THAT(error_of<TapeError>([&] { x(list) += 1; }), contains("add_"));
  }
  Tape tape;
  tape.watch(x);
  Tensor h = x * 2.0, square = h * h;
  h(list) = 0;
  CHECK_THAT(error_of<TapeError>([&] { tape.gradient(sum(square), x); }), contains("mul: its gradient needs input 0"));
}

TEST_CASE("the gradient of the largest elements is shared among equals, and NaN is one of them") {
  Tensor x = doubles({3, 0, 0}), source = doubles({3, 1, 3, nan, 2}), index = tensor({0, 0, 0, 1, 2});
  Tape tape({.persistent = true});
  tape.watch(x);
  tape.watch(source);
  Tensor y = scatter_reduce(x, 0, index, source, ScatterReduction::amax);
  CHECK(y(0).item() == 3);
  CHECK(std::isnan(y(1).item()));
  auto [dx, ds] = tape.gradient(sum(y), x, source);
  CHECK(dx(0).item() == Approx(1.0 / 3));
  CHECK(ds(slice(0, 3)).to_vector<double>()[2] == Approx(1.0 / 3));
  CHECK(ds(3).item() == 1);
  Tensor low = scatter_reduce(x, 0, index, source, ScatterReduction::amin, {.include_self = false});
  CHECK(low(0).item() == 1);
  CHECK(std::isnan(low(1).item()));
  CHECK(low(2).item() == 2);
}

TEST_CASE("the gradient of a product of scattered zeros is exact") {
  Tensor x = doubles({2, 5}), source = doubles({0, 3, 0}), index = tensor({0, 0, 1});
  Tape tape;
  tape.watch(x);
  tape.watch(source);
  Tensor y = scatter_reduce(x, 0, index, source, ScatterReduction::prod);
  auto [dx, ds] = tape.gradient(sum(y), x, source);
  CHECK(ds.to_vector<double>() == Doubles{6, 0, 5});
  CHECK(dx.to_vector<double>() == Doubles{0, 0});
}

TEST_CASE("the mean of scattered integers is rounded down, and infinities are largest and smallest") {
  Tensor index = tensor({0, 0, 0});
  CHECK(scatter_reduce(tensor({-4}), 0, index, tensor({-1, 0, 0}), ScatterReduction::mean).item() == -2);
  Tensor x = doubles({0}), ends = doubles({-infinity, infinity, 1});
  CHECK(scatter_reduce(x, 0, index, ends, ScatterReduction::amax).item() == infinity);
  CHECK(scatter_reduce(x, 0, index, ends, ScatterReduction::amin).item() == -infinity);
}

TEST_CASE("wrong masks and index tensors are named") {
  const std::string rest = ": an operand is an undefined tensor";
  all_fail<Error>({
      Bad("index" + rest, [&] { m(undefined); }),
      Bad("index_copy" + rest, [&] { index_copy(m, 0, list, undefined); }),
      Bad("index_fill" + rest, [&] { index_fill(m, 0, undefined, 1); }),
      Bad("masked_scatter" + rest, [&] { masked_scatter(m, undefined, m); }),
      Bad("scatter_reduce" + rest, [&] { scatter_reduce(m, 0, places, undefined, ScatterReduction::sum); }),
  });
  all_fail<IndexError>({
      Bad("index: index 4 is out of range for axis 0 of (4,) f32",
          [&] {
            v(tensor({0, 4}));
          }),
      Bad("index: index -3 is out of range for axis 0 of (2, 3) f32", [&] { m(tensor({-3}), list); }),
      Bad("index: 3 indices are too many for (2, 3) f32", [&] { m(mask, list); }),
      Bad("index_copy: index 2 is out of range for axis 0 of (2, 3) f32",
          [&] {
            index_copy(m, 0, tensor({2}), ones({1, 3}));
          }),
      Bad("index_fill: index -4 is out of range for axis 1 of (2, 3) f32", [&] { index_fill(m, 1, tensor({-4}), 0); }),
      Bad("scatter_reduce: index 5 is out of range for axis 0 of (2, 3) f32",
          [&] { scatter_reduce(m, 0, places + 5, m, ScatterReduction::amax); }),
  });
  all_fail<ShapeError>({
      Bad("index: the mask (2,) does not fit the axes from 1 on of (2, 3) f32",
          [&] {
            m(0, tensor({true, false}));
          }),
      Bad("index: the indices do not broadcast: (2,), (3,)",
          [&] {
            m(list, tensor({0, 1, 0}));
          }),
      Bad("index: the indices make 9 axes of (2, 3) f32: there can be 8",
          [&] {
            m(zeros({1, 1, 1, 1, 1, 1, 1, 1}, {.dtype = i64}));
          }),
      Bad("index_assign_: y (4,) does not broadcast to x (2, 3)", [&] { m(list) = v; }),
      Bad("add_: y (4,) does not broadcast to x (2, 3)", [&] { m(list) += v; }),
      Bad("index_copy: the source (4,) does not have the shape (2, 3)", [&] { index_copy(m, 0, list, v); }),
      Bad("index_copy: the index (2, 3) i64 is not a vector", [&] { index_copy(m, 0, places, m); }),
      Bad("index_copy: axis 2 does not exist", [&] { index_copy(m, 2, list, m); }),
      Bad("index_fill: the value (2, 3) f32 is not a single number", [&] { index_fill(m, 0, list, m); }),
      Bad("masked_scatter: the mask (2, 3) does not broadcast to x (4,)", [&] { masked_scatter(v, mask, v); }),
      Bad("masked_scatter: the source (4,) f32 has fewer elements than the 6 that the mask (2, 3) selects of x (2, 3)",
          [&] { masked_scatter(m, !mask, v); }),
      Bad("scatter_reduce: the source (4,) does not have the index's shape (2, 3)",
          [&] { scatter_reduce(m, 0, places, v, ScatterReduction::prod); }),
      Bad("scatter_reduce: the index (2,) does not fit x (2, 3)",
          [&] { scatter_reduce(m, 0, list, v, ScatterReduction::mean); }),
  });
  all_fail<DTypeError>({
      Bad("index: an index tensor is bool, i32 or i64, not (4,) f32", [&] { m(v); }),
      Bad("index_assign_: the number 4294967296 does not fit i32",
          [&] {
            Tensor ints = tensor({1, 2});
            ints(ints > 0) = 1l << 32;
          }),
      Bad("index_copy: indices are i32 or i64, not (4,) f32", [&] { index_copy(m, 0, v, m); }),
      Bad("index_copy: the source (2, 3) f64 does not have x's dtype f32",
          [&] {
            index_copy(m, 0, list, zeros({2, 3}, {.dtype = f64}));
          }),
      Bad("index_fill: the number 0.5 does not fit into (2,) i32", [&] { index_fill(list, 0, list, 0.5); }),
      Bad("masked_scatter: the mask is bool, not (2, 3) f32", [&] { masked_scatter(m, m, m); }),
      Bad("masked_scatter: the source (2, 3) i64 does not have x's dtype f32",
          [&] { masked_scatter(m, mask, places); }),
      Bad("scatter_reduce: takes numbers, not (2, 3) bool; convert it with to(x, i32)",
          [&] { scatter_reduce(mask, 0, places, mask, ScatterReduction::sum); }),
      Bad("scatter_reduce: the source (2, 3) i64 does not have x's dtype f32",
          [&] { scatter_reduce(m, 0, places, places, ScatterReduction::sum); }),
  });
}

}  // namespace reel_test
