#include <reel/reel.h>

#include <limits>

#include "ops/bad_input.h"
#include "ops/table.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(),
                       least = std::numeric_limits<std::int64_t>::min();

const Tensor undefined, m = zeros({2, 3}), v = zeros({4}), number = zeros({});

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

}  // namespace reel_test
