#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "ops/bad_input.h"
#include "ops/numbers.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(),
                       least = std::numeric_limits<std::int64_t>::min();

const Tensor undefined, m = zeros({2, 3}), v = zeros({4}), number = zeros({}), places = zeros({2, 3}, {.dtype = i64}),
                        list = tensor({0, 1}), mask = m > 0;

}  // namespace

TEST_CASE("an indexed tensor is a view that serves as a tensor, and knows its base") {
  Tensor x = reshape(arange(24, {.dtype = f64}), {2, 3, 4});
  auto row = x(1, 2);
  CHECK(row.data<double>() == x.data<double>() + 20);
  CHECK(row.base().is(x));
  Tensor plain = x(1, 2);
  CHECK(same_bits(plain, row));
  CHECK(sum(row + x(0, 0)).item() == 92);
  CHECK(concat({row, x(0, 1), plain}).shape() == Shape{12});
  CHECK(same_bits(true ? row : plain, plain));
  CHECK(x(0)(1)(2).item() == 6);
  CHECK(x(0, slice(1)).is_contiguous());
  Tape tape;
  tape.watch(row);
  auto [first, second] = tape.gradient(sum(row(slice(1)) * plain(slice(1))), row, row);
  CHECK(first.to_vector<double>() == std::vector<double>{0, 21, 22, 23});
  CHECK(same_bits(first, second));
}

TEST_CASE("an index is one entry of the tape") {
  Tensor x = ones({2, 3, 4}, {.dtype = f64});
  Tape tape;
  tape.watch(x);
  std::size_t before = tape.size();
  Tensor y = x(1, newaxis, slice(0, 2), ellipsis, -1);
  CHECK(tape.size() == before + 1);
}

TEST_CASE("the ends of a slice of an index may be any integers") {
  Tensor x = arange(5);
  auto values = [](const Tensor& part) { return part.to_vector<std::int64_t>(); };
  using Values = std::vector<std::int64_t>;
  CHECK(values(x(slice())) == Values{0, 1, 2, 3, 4});
  CHECK(values(x(slice(least, most))) == Values{0, 1, 2, 3, 4});
  CHECK(values(x(slice(0, std::size_t{1} << 63))) == Values{0, 1, 2, 3, 4});
  CHECK(values(x(slice(most))) == Values{});
  CHECK(values(x(slice(1, most, most))) == Values{1});
  CHECK(values(x(slice(std::nullopt, 2))) == Values{0, 1});
  CHECK(values(x(slice(1, std::nullopt, 2))) == Values{1, 3});
  CHECK(values(x(slice(std::nullopt, std::nullopt, -1))) == Values{4, 3, 2, 1, 0});
  CHECK(values(x(slice(most, least, -1))) == Values{4, 3, 2, 1, 0});
  CHECK(values(x(slice(3, 0, -2))) == Values{3, 1});
  CHECK(values(x(slice(-9, std::nullopt, -1))) == Values{});
  CHECK(values(x(slice(4, std::nullopt, least))) == Values{4});
}

TEST_CASE("the gradients of many parts are added up in one tensor") {
  Tensor x = randn({6, 2, 3}, {.dtype = f64}).requires_grad(), w = randn({6, 2, 3}, {.dtype = f64});
  std::map<std::string, int> ran;
  Tensor by_index, by_slice;
  {
    debug::Listen listen([&](const debug::OpEvent& event) { ++ran[std::string(event.op)]; });
    for (bool indexed : {true, false}) {
      Tape tape;
      Tensor loss = zeros({}, {.dtype = f64});
      for (int t = 0; t < 6; ++t) {
        // Overlapping, and from the end.
        Tensor part = indexed ? x(slice(t, t + 2)) : slice(x, 0, t, t + 2);
        Tensor reversed = indexed ? x(5 - t, slice(most, least, -1)) : flip(select(x, 0, 5 - t), {0});
        loss = loss + sum(part * w(slice(t, t + 2))) + sum(reversed * w(t));
      }
      Tensor g = tape.gradient(loss, x);
      (indexed ? by_index : by_slice) = g;
    }
  }
  Tensor expected = zeros({6, 2, 3}, {.dtype = f64});
  for (int t = 0; t < 6; ++t) {
    Tensor total = w(t) * (t == 0 ? 1.0 : 2.0) + flip(w(5 - t), {0});
    auto place = expected.write<double>();
    std::vector<double> values = total.to_vector<double>();
    std::copy(values.begin(), values.end(), place.begin() + std::ptrdiff_t{6} * t);
  }
  CHECK(max(abs(by_index - expected)).item() < 1e-14);
  CHECK(max(abs(by_slice - expected)).item() < 1e-14);
  CHECK(ran["index_gradient"] == 1);
  CHECK(ran["accumulate_index"] == 11);
  CHECK(ran["slice_gradient"] == 1);
  CHECK(ran["accumulate_slice"] == 11);
}

TEST_CASE("a wrong index is named") {
  all_fail<IndexError>({
      Bad("index: index 2 is out of range for axis 0 of (2, 3) f32", [&] { m(2); }),
      Bad("index: index -4 is out of range for axis 1 of (2, 3) f32", [&] { m(newaxis, ellipsis, -4); }),
      Bad("index: index 9223372036854775807 is out of range for axis 0", [&] { m(~std::size_t{0}); }),
      Bad("index: index 0 is out of range for axis 0 of (0,) f32", [&] { zeros({0})(0); }),
      Bad("index: 3 indices are too many for (2, 3) f32", [&] { m(0, ellipsis, slice(), 0); }),
      Bad("index: 1 indices are too many for () f32", [&] { number(0); }),
  });
  all_fail<ShapeError>({
      Bad("index: there can be one ellipsis, not 2, for (2, 3) f32", [&] { m(ellipsis, ellipsis); }),
      Bad("index: a step of 0 goes nowhere, for (2, 3) f32", [&] { m(slice(0, 1, 0)); }),
      Bad("index: 7 new axes are too many for (2, 3) f32: there can be 8 in all",
          [&] { m(newaxis, newaxis, newaxis, newaxis, newaxis, newaxis, newaxis); }),
  });
  all_fail<Error>({Bad("index: an operand is an undefined tensor", [&] { undefined(0); })});
}

TEST_CASE("of several values for one place the last one is put there, and has the gradient") {
  Tensor x = doubles({1, 2, 3}), index = tensor({1, 0, 1, -2}), source = doubles({10, 20, 30, nan});
  Tape tape({.persistent = true});
  tape.watch(x);
  tape.watch(source);
  for (const Tensor& y : {scatter(x, 0, index, source), index_put(x, {index}, source)}) {
    std::vector<double> values = y.to_vector<double>();
    CHECK(values[0] == 20);
    CHECK(std::isnan(values[1]));
    CHECK(values[2] == 3);
    auto [dx, ds] = tape.gradient(sum(y), x, source);
    CHECK(dx.to_vector<double>() == std::vector<double>{0, 0, 1});
    CHECK(ds.to_vector<double>() == std::vector<double>{0, 1, 0, 1});
  }
}

TEST_CASE("numbers are scattered, put and filled in") {
  CHECK(scatter(m, 1, tensor({{0}, {-1}}), 2).to_vector<float>() == std::vector<float>{2, 0, 0, 0, 0, 2});
  CHECK(index_put(m, {list, list}, 2, {.accumulate = true}).to_vector<float>() == std::vector<float>{2, 0, 0, 0, 2, 0});
  Tensor filled = masked_fill(doubles({1, nan, 3}), tensor({false, true, true}), -infinity);
  CHECK(filled.to_vector<double>() == std::vector<double>{1, -infinity, -infinity});
  CHECK(masked_fill(tensor({1, 2}), tensor({true, false}), 7).to_vector<int>() == std::vector<int>{7, 2});
}

TEST_CASE("a value put over does not reach the gradient, whatever it is") {
  Tensor x = doubles({nan, 2}), value = doubles({1});
  Tape tape;
  tape.watch(x);
  Tensor y = masked_fill(x, tensor({true, false}), 0);
  CHECK(tape.gradient(sum(y * y), x).to_vector<double>() == std::vector<double>{0, 4});
}

TEST_CASE("NaN and infinities are not zero, both zeros are") {
  for (DType dtype : {f32, f64, bf16, f16}) {
    Tensor x = to(doubles({0, -0.0, nan, infinity, -infinity, 1e-7}), dtype);
    CHECK(nonzero(x).to_vector<std::int64_t>() == std::vector<std::int64_t>{2, 3, 4, 5});
  }
  CHECK(nonzero(doubles({})).shape() == Shape{0, 1});
  CHECK(nonzero(number).shape() == Shape{0, 0});
  CHECK(nonzero(ones({})).shape() == Shape{1, 0});
  CHECK(masked_select(m, mask).shape() == Shape{0});
}

TEST_CASE("nothing is read where there are no indices") {
  Tensor none = zeros({0}, {.dtype = i64}), empty = zeros({0, 3});
  CHECK(take(empty, none, 0).shape() == Shape{0, 3});
  CHECK(take(zeros({0}), none).shape() == Shape{0});
  CHECK(index_select(m, 1, none).shape() == Shape{2, 0});
  CHECK(same_bits(index_add(m, 0, none, empty), m));
  CHECK(same_bits(index_put(m, {none}, 5), m));
  CHECK(same_bits(segment_sum(empty, none, 2), m));
  CHECK(segment_sum(empty, none, 0).shape() == Shape{0, 3});
  CHECK(same_bits(scatter(m, 0, zeros({0, 3}, {.dtype = i64}), empty), m));
}

TEST_CASE("halves are added in f32 and rounded once") {
  for (DType dtype : {bf16, f16}) {
    Tensor index = zeros({3000}, {.dtype = i32}), source = ones({3000}, {.dtype = dtype});
    Tensor expected = to(full({1}, 3000), dtype), x = zeros({1}, {.dtype = dtype});
    CHECK(same_bits(index_add(x, 0, index, source), expected));
    CHECK(same_bits(index_put(x, {index}, source, {.accumulate = true}), expected));
    CHECK(same_bits(segment_sum(source, index, 1), expected));
  }
}

TEST_CASE("i32 and i64 indices, packed or not, do the same") {
  Tensor x = reshape(arange(12, {.dtype = f64}), {4, 3}), wide = tensor({{0l, 3l}, {-1l, 2l}}), row = slice(x, 0, 0, 2);
  using Taking = std::function<Tensor(const Tensor& index)>;
  const Taking functions[] = {
      [&](const Tensor& index) { return take(x, index); },
      [&](const Tensor& index) { return take(x, index, 0); },
      [&](const Tensor& index) { return index_select(x, 0, index(0)); },
      [&](const Tensor& index) { return index_add(x, 0, index(0), row); },
      [&](const Tensor& index) { return index_put(x, {index(0)}, row); },
      [&](const Tensor& index) {
        return index_put(x, {index(0), index(0) * 0}, 9);
      },
      [&](const Tensor& index) { return scatter(x, 0, index, row(slice(), slice(1))); },
      [&](const Tensor& index) { return segment_sum(row, index(0), 4); },
  };
  for (const Taking& function : functions) {
    Tensor expected = function(wide);
    CHECK(same_bits(function(to(wide, i32)), expected));
    CHECK(same_bits(function(transpose(contiguous(transpose(wide)))), expected));
  }
}

TEST_CASE("large additions give the same bits however many threads there are") {
  manual_seed(3);
  Tensor x = zeros({5000, 16}), source = randn({60000, 16});
  Tensor index = to(rand({60000}) * 5000, i64);
  Tensor together = index_add(x, 0, index, source);
  // Columns one by one are too few for several threads.
  std::vector<Tensor> columns;
  for (int i = 0; i < 16; ++i)
    columns.push_back(
        index_add(x(slice(), slice(i, i + 1)), 0, index(slice(0, 30000)), source(slice(0, 30000), slice(i, i + 1))));
  Tensor half = index_add(x, 0, index(slice(0, 30000)), source(slice(0, 30000)));
  CHECK(same_bits(concat(columns, 1), half));
  CHECK(same_bits(index_add(half, 0, index(slice(30000)), source(slice(30000))), together));
  CHECK(same_bits(scatter_add(x, 0, expand(reshape(index, {60000, 1}), {60000, 16}), source), together));
}

TEST_CASE("an index out of range throws before anything is read") {
  Tensor far = tensor({0, 2}), wrong = full({2, 3}, 2, {.dtype = i64});
  all_fail<IndexError>({
      Bad("gather: index 2 is out of range for axis 0 of (2, 3) f32", [&] { gather(m, 0, wrong); }),
      Bad("scatter: index 2 is out of range for axis 0 of (2, 3) f32", [&] { scatter(m, 0, wrong, m); }),
      Bad("scatter_add: index 2 is out of range for axis 0", [&] { scatter_add(m, 0, wrong, m); }),
      Bad("take: index 2 is out of range for axis 0 of (2, 3) f32", [&] { take(m, far, 0); }),
      Bad("take: index -7 is out of range for axis 0 of (6,) f32", [&] { take(m, tensor({-7})); }),
      Bad("take: index 0 is out of range for axis 0 of (0,) f32", [&] { take(zeros({0}), list); }),
      Bad("index_select: index -4 is out of range for axis 1", [&] { index_select(m, 1, tensor({-4})); }),
      Bad("embedding: index 2 is out of range for axis 0", [&] { embedding(m, far); }),
      Bad("index_add: index 2 is out of range for axis 0", [&] { index_add(m, 0, far, m); }),
      Bad("segment_sum: segment 2 is out of range for 2 segments", [&] { segment_sum(m, far, 2); }),
      Bad("index_put: index 3 is out of range for axis 1 of (2, 3) f32",
          [&] {
            index_put(m, {list, tensor({0, 3})}, 1);
          }),
      Bad("index_put: 3 indices do not fit (2, 3) f32",
          [&] {
            index_put(m, {list, list, list}, 1);
          }),
      Bad("index_put: 0 indices do not fit (2, 3) f32", [&] { index_put(m, std::span<const Tensor>(), 1); }),
      Bad("take: index 9223372036854775807 is out of range", [&] { take(m, tensor({most})); }),
      Bad("take: index -9223372036854775808 is out of range", [&] { take(m, tensor({least})); }),
  });
}

TEST_CASE("shapes that do not fit an index are named") {
  all_fail<ShapeError>({
      Bad("scatter: axis 2 does not exist in (2, 3) f32", [&] { scatter(m, 2, places, m); }),
      Bad("scatter: the index (2,) does not fit x (2, 3)", [&] { scatter(m, 0, list, v); }),
      Bad("scatter: the source (4,) does not have the index's shape (2, 3)", [&] { scatter(m, 0, places, v); }),
      Bad("take: axis 2 does not exist in (2, 3) f32", [&] { take(m, list, 2); }),
      Bad("take: axis 0 does not exist in () f32", [&] { take(number, list, 0); }),
      Bad("take: the indices (1, 1, 1, 1, 1, 1, 1, 1) make 9 axes of (2, 3) f32: there can be 8",
          [&] {
            take(m, zeros({1, 1, 1, 1, 1, 1, 1, 1}, {.dtype = i64}), 0);
          }),
      Bad("index_select: the index (2, 3) i64 is not a vector", [&] { index_select(m, 0, places); }),
      Bad("index_select: axis -3 does not exist", [&] { index_select(m, -3, list); }),
      Bad("index_add: the index (2, 3) i64 is not a vector", [&] { index_add(m, 0, places, m); }),
      Bad("index_add: axis 2 does not exist", [&] { index_add(m, 2, list, m); }),
      Bad("index_add: the source (4,) does not have the shape (2, 3) that x (2, 3) f32 and the index (2,) ask for",
          [&] { index_add(m, 0, list, v); }),
      Bad("segment_sum: the segment ids (4,) are not one for each row of x (2, 3) f32",
          [&] { segment_sum(m, to(v, i64), 2); }),
      Bad("segment_sum: the segment ids (2,) are not one for each row of x () f32",
          [&] { segment_sum(number, list, 2); }),
      Bad("segment_sum: there cannot be -1 segments", [&] { segment_sum(m, list, -1); }),
      Bad("index_put: the indices do not broadcast: (2,), (3,)",
          [&] {
            index_put(m, {list, tensor({0, 1, 0})}, 1);
          }),
      Bad("index_put: the values (4,) do not broadcast to (2, 3), what the indices select of (2, 3) f32",
          [&] { index_put(m, {list}, v); }),
      Bad("index_put: the indices (1, 1, 1, 1, 1, 1, 1, 1) ask for values with 9 axes, for (2, 3) f32: there can be 8",
          [&] {
            index_put(m, {zeros({1, 1, 1, 1, 1, 1, 1, 1}, {.dtype = i64})}, 1);
          }),
      Bad("masked_fill: the mask (2, 3) does not broadcast to x (4,)", [&] { masked_fill(v, mask, 1); }),
      Bad("masked_fill: the mask (2, 3) does not broadcast to x (3,)", [&] { masked_fill(m(0), mask, 1); }),
      Bad("masked_fill: the value (2, 3) f32 is not a single number", [&] { masked_fill(m, mask, m); }),
      Bad("masked_select: shapes do not broadcast: x (4,), mask (2, 3)", [&] { masked_select(v, mask); }),
  });
}

TEST_CASE("dtypes that do not fit an index are named") {
  Tensor wide = zeros({2, 3}, {.dtype = f64}), ints = tensor({{1, 2}, {3, 4}});
  all_fail<DTypeError>({
      Bad("scatter: indices are i32 or i64, not (2, 3) f32", [&] { scatter(m, 0, m, m); }),
      Bad("scatter: the values (2, 3) f64 do not have x's dtype f32", [&] { scatter(m, 0, places, wide); }),
      Bad("scatter: the number 0.5 does not fit into (2, 2) i32", [&] { scatter(ints, 0, ints, 0.5); }),
      Bad("scatter: the number 4294967296 does not fit i32", [&] { scatter(ints, 0, ints, 1l << 32); }),
      Bad("take: indices are i32 or i64, not (4,) f32", [&] { take(m, v); }),
      Bad("take: indices are i32 or i64, not (2, 3) bool", [&] { take(m, mask, 0); }),
      Bad("take: takes a tensor here, not the number 1", [&] { take(m, 1); }),
      Bad("index_select: indices are i32 or i64", [&] { index_select(m, 0, v); }),
      Bad("embedding: indices are i32 or i64", [&] { embedding(m, v); }),
      Bad("index_add: indices are i32 or i64", [&] { index_add(m, 0, v, m); }),
      Bad("index_add: the source (2, 3) f64 does not have x's dtype f32", [&] { index_add(m, 0, list, wide); }),
      Bad("segment_sum: indices are i32 or i64", [&] { segment_sum(v, v, 2); }),
      Bad("index_put: indices are i32 or i64", [&] { index_put(m, {m}, 1); }),
      Bad("index_put: the values (2, 3) f64 do not have x's dtype f32", [&] { index_put(m, {list}, wide); }),
      Bad("index_put: the number 0.5 does not fit into (2, 2) i32", [&] { index_put(ints, {list}, 0.5); }),
      Bad("masked_fill: the mask is bool, not (2, 3) f32", [&] { masked_fill(m, m, 1); }),
      Bad("masked_fill: the number 1.5 does not fit into (2, 2) i32", [&] { masked_fill(ints, ints > 0, 1.5); }),
      Bad("masked_fill: the values () f32 do not have x's dtype i32", [&] { masked_fill(ints, ints > 0, number); }),
      Bad("masked_select: the mask is bool, not (2, 3) i64", [&] { masked_select(m, places); }),
  });
}

TEST_CASE("an undefined operand is named by every op on indices") {
  const std::string rest = ": an operand is an undefined tensor";
  const Tensor& u = undefined;
  all_fail<Error>({
      Bad("scatter" + rest, [&] { scatter(u, 0, places, m); }),
      Bad("scatter" + rest, [&] { scatter(m, 0, u, m); }),
      Bad("scatter" + rest, [&] { scatter(m, 0, places, u); }),
      Bad("take" + rest, [&] { take(u, list); }),
      Bad("take" + rest, [&] { take(m, u); }),
      Bad("take" + rest, [&] { take(u, list, 0); }),
      Bad("index_select" + rest, [&] { index_select(m, 0, u); }),
      Bad("index_add" + rest, [&] { index_add(u, 0, list, m); }),
      Bad("index_add" + rest, [&] { index_add(m, 0, list, u); }),
      Bad("segment_sum" + rest, [&] { segment_sum(m, u, 2); }),
      Bad("index_put" + rest, [&] { index_put(u, {list}, 1); }),
      Bad("index_put" + rest, [&] { index_put(m, {u}, 1); }),
      Bad("index_put" + rest, [&] { index_put(m, {list}, u); }),
      Bad("masked_fill" + rest, [&] { masked_fill(m, u, 1); }),
      Bad("masked_fill" + rest, [&] { masked_fill(m, mask, u); }),
      Bad("masked_select" + rest, [&] { masked_select(u, mask); }),
      Bad("nonzero" + rest, [&] { nonzero(u); }),
  });
}

}  // namespace reel_test
