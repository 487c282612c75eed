#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/bad_input.h"
#include "ops/numbers.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       most = std::numeric_limits<std::int64_t>::max();

// Numbers that differ from their neighbours and are exact in bf16 and u8: 0 … 250, repeated.
Tensor remainder_of(const Shape& shape) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.numel(); ++i) values.push_back(static_cast<float>(i % 251));
  return tensor(values, shape);
}

}  // namespace

TEST_CASE("a copy between any two layouts moves every element, also where several threads do it") {
  // Sizes around the panels', below and above the grain of threads, and beyond what is written past the caches.
  const Shape shapes[] = {{3, 2, 9}, {1, 33, 70}, {5, 130, 257}, {2, 300, 301}, {1, 1500, 1501}};
  for (const Shape& shape : shapes)
    for (DType dtype : {u8, bf16, f32, f64}) {
      CAPTURE(to_string(shape), name_of(dtype));
      if (shape.numel() > 1'000'000 && dtype != f32) continue;
      Tensor x = to(remainder_of(shape), dtype);
      for (const Shape& axes : {Shape{0, 2, 1}, Shape{2, 1, 0}, Shape{1, 2, 0}, Shape{1, 0, 2}}) {
        CAPTURE(to_string(axes));
        Tensor y = copy(permute(x, axes)), back = y;
        Shape inverse = axes;
        for (int i = 0; i < 3; ++i) inverse[static_cast<int>(axes[i])] = i;
        CHECK(y.is_contiguous());
        CHECK(same_bits(copy(permute(y, inverse)), x));
        CHECK(array_of(y).values == array_of(permute(x, axes)).values);
      }
    }
}

TEST_CASE("large conversions, fills and joins are the same as small ones side by side") {
  Tensor x = remainder_of({70'001, 3}), y = to(x, i32), part = slice(x, 0, 69'000);
  CHECK(same_bits(slice(y, 0, 69'000), to(part, i32)));
  CHECK(same_bits(slice(to(transpose(x), bf16), 1, 69'000), to(transpose(part), bf16)));
  Tensor joined = concat({x, x}, 1);
  CHECK(same_bits(slice(joined, 1, 3), x));
  CHECK(same_bits(slice(joined, 1, 0, 3), x));
  // Parts of few columns, of several layouts and dtypes, in the middle axis, too.
  Tensor column = slice(x, 1, 1, 2);
  for (DType dtype : {u8, f32, f64}) {
    Tensor mixed = concat({to(x, dtype), expand(to(column, dtype), {70'001, 2}), to(column, dtype)}, 1);
    CHECK(same_bits(slice(mixed, 1, 0, 3), to(x, dtype)));
    for (std::int64_t i : {3, 4, 5}) CHECK(same_bits(slice(mixed, 1, i, i + 1), to(column, dtype)));
    Tensor stacked = stack({to(x, dtype), flip(to(x, dtype), 0)}, 1);
    CHECK(same_bits(select(stacked, 1, 0), to(x, dtype)));
    CHECK(same_bits(select(stacked, 1, 1), flip(to(x, dtype), 0)));
  }
  CHECK(sum(full({3, 50'001}, 2, {.dtype = i64})).item<std::int64_t>() == 300'006);
}

TEST_CASE("a view never copies") {
  Tensor x = reshape(arange(24), {2, 3, 4});
  auto shares = [&](const Tensor& y) { return y.body().storage == x.body().storage; };
  CHECK(shares(view(x, {6, 4})));
  CHECK(shares(view(transpose(x, 0, 1), {3, 2, 2, 2})));
  CHECK(shares(view(slice(x, 2, 0, 4, 2), {-1, 2})));
  CHECK(shares(flatten(x)));
  CHECK(shares(flip(x)));
  CHECK(shares(squeeze(unsqueeze(x, {0, -1}))));
  CHECK(shares(diag(view(x, {6, 4}), 1)));
  for (const Tensor& part : chunk(x, 3, 1)) CHECK(shares(part));
  CHECK(!shares(flatten(transpose(x))));
  // A result that is no view shares no elements, even if no element moves.
  for (const Tensor& y : {roll(x, 0, 0), roll(x, 24, 1), tile(x, {1, 1}), repeat(x, 1, 0), pad(x, {{0, 0}}),
                          pad(x, {{0, 0}}, {.mode = PadMode::edge}), tril(x, 100), triu(x, -100)}) {
    CHECK(!shares(y));
    CHECK(y.is_contiguous());
  }
  CHECK(tile(ones({1}), {3}).is_contiguous());
  CHECK(repeat(ones({}).requires_grad() * ones({1}), 3, 0).is_contiguous());
}

TEST_CASE("each element is repeated, however many there are and however often") {
  for (DType dtype : all_dtypes)
    for (std::int64_t size : {0, 1, 2, 41})
      for (std::int64_t step : {1, -2})
        for (std::int64_t count = 0; count <= 18; ++count) {
          Tensor x = to(arange(2 * size, {.dtype = i64}), dtype);
          x = step == 1 ? slice(x, 0, 0, size) : slice(x, 0, -1, std::numeric_limits<std::int64_t>::min(), step);
          std::vector<double> given = array_of(x).values, expected;
          for (double value : given) expected.insert(expected.end(), static_cast<std::size_t>(count), value);
          CAPTURE(name_of(dtype), size, step, count);
          CHECK(array_of(repeat(x, count, 0)).values == expected);
        }
}

TEST_CASE("chunks are PyTorch's") {
  auto sizes = [](std::int64_t size, std::int64_t count) {
    std::vector<std::int64_t> found;
    for (const Tensor& part : chunk(zeros({size}), count)) found.push_back(part.numel());
    return found;
  };
  CHECK(sizes(10, 4) == std::vector<std::int64_t>{3, 3, 3, 1});
  CHECK(sizes(6, 4) == std::vector<std::int64_t>{2, 2, 2});
  CHECK(sizes(3, most) == std::vector<std::int64_t>{1, 1, 1});
  CHECK(sizes(0, 3) == std::vector<std::int64_t>{0, 0, 0});
}

TEST_CASE("a reflection wider than x goes on and on, and one wider than memory is named") {
  for (std::int64_t size : {2, 3, 5})
    for (PadWidth width : {PadWidth{7, 8}, {0, 23}, {23, 0}, {5, 40}, {41, 3}}) {
      std::vector<double> expected;
      for (std::int64_t i = -width.before; i < size + width.after; ++i) {
        std::int64_t period = 2 * (size - 1), place = (i % period + period) % period;
        expected.push_back(static_cast<double>(std::min(place, period - place)));
      }
      CHECK(values_of(pad(arange(size), {width}, {.mode = PadMode::reflect})) == expected);
    }
  CHECK(values_of(pad(ones({0, 2}), {{0, 0}, {0, 1}}, {.mode = PadMode::reflect})).empty());
  all_fail<Error>({
      Bad("pad: a tensor of shape (4611686018427387906,) is larger than any memory",
          [] {
            pad(ones({2}), {{most / 2 + 1, 0}}, {.mode = PadMode::reflect});
          }),
      Bad("pad: a tensor of shape (4611686018427387906,) is larger than any memory",
          [] {
            pad(ones({2}), {{0, most / 2 + 1}}, {.mode = PadMode::edge});
          }),
  });
}

TEST_CASE("triangles and pads put zeros in place of NaN, and keep what they keep to the bit") {
  Tensor x = full({2, 2}, NAN);
  CHECK(values_of(tril(x, -1))[1] == 0);
  CHECK(std::isnan(values_of(tril(x, -1))[2]));
  CHECK(values_of(triu(x, 2)) == std::vector<double>(4, 0));
  Tensor negative = tensor({{-0.0, -0.0}, {-0.0, -0.0}});
  CHECK(std::signbit(values_of(tril(negative))[0]));
  CHECK(!std::signbit(values_of(tril(negative))[1]));
  CHECK(std::isnan(values_of(pad(ones({1}), {{1, 0}}, {.value = NAN}))[0]));
  CHECK(values_of(pad(tensor({1, 2}), {{1, 1}}, {.value = -7})) == std::vector<double>{-7, 1, 2, -7});
}

TEST_CASE("empty lists of axes, shifts and repetitions leave everything as it is") {
  Tensor x = reshape(arange(3), {1, 3});
  CHECK(squeeze(x, {}).shape() == x.shape());
  CHECK(unsqueeze(x, {}).shape() == x.shape());
  CHECK(same_bits(flip(x, {}), x));
  CHECK(same_bits(roll(x, {}, {}), x));
  CHECK(same_bits(tile(x, {}), x));
}

TEST_CASE("array functions name what does not fit") {
  const Tensor m = zeros({2, 3}), v = zeros({4}), number = zeros({}), t = transpose(zeros({2, 3}));
  all_fail<ShapeError>({
      Bad("view: the strides (1, 3) of (3, 2) f32 do not allow the shape (6,) without a copy; use reshape",
          [&] { view(t, {6}); }),
      Bad("view: the 6 elements of (2, 3) f32 do not fill the shape (4,)", [&] { view(m, {4}); }),
      Bad("view: the shape (-1, -1) may have one size of -1",
          [&] {
            view(m, {-1, -1});
          }),
      Bad("flatten: the last axis 0 lies before the first, 1, of (2, 3) f32", [&] { flatten(m, 1, 0); }),
      Bad("flatten: axis 2 does not exist in (2, 3) f32", [&] { flatten(m, 0, 2); }),
      Bad("flatten: axis 1 does not exist in () f32", [&] { flatten(number, 1); }),
      Bad("unsqueeze: axis -4 is named twice in (0, -4), for (2, 3) f32",
          [&] {
            unsqueeze(m, {0, -4});
          }),
      Bad("unsqueeze: an axis cannot be put in at -4 of (2, 3) f32", [&] { unsqueeze(m, -4); }),
      Bad("squeeze: axis 0 of (2, 3) f32 has not size 1", [&] { squeeze(m, {0}); }),
      Bad("squeeze: axis -2 is named twice in (0, -2), for (1, 3) f32",
          [&] {
            squeeze(zeros({1, 3}), {0, -2});
          }),
      Bad("squeeze: axis 2 does not exist in (2, 3) f32", [&] { squeeze(m, 2); }),
      Bad("chunk: 0 parts cannot be made of (2, 3) f32", [&] { chunk(m, 0); }),
      Bad("chunk: axis 2 does not exist in (2, 3) f32", [&] { chunk(m, 2, 2); }),
      Bad("chunk: 9223372036854775807 empty parts of (0,) f32", [] { chunk(zeros({0}), most); }),
      Bad("flip: axis 2 does not exist in (2, 3) f32", [&] { flip(m, 2); }),
      Bad("flip: axis 1 is named twice in (1, 1), for (2, 3) f32",
          [&] {
            flip(m, {1, 1});
          }),
      Bad("roll: there are 1 shifts (1,) for 2 axes (0, 1)",
          [&] {
            roll(m, {1}, {0, 1});
          }),
      Bad("roll: axis 2 does not exist in (2, 3) f32", [&] { roll(m, 1, 2); }),
      Bad("tile: the repetitions (2, -1) of (2, 3) f32 may not be negative",
          [&] {
            tile(m, {2, -1});
          }),
      Bad("tile: (2, 3) f32 cannot be repeated 9223372036854775807 times along axis 1", [&] { tile(m, {most}); }),
      Bad("repeat: the elements of (2, 3) f32 cannot be repeated -1 times", [&] { repeat(m, -1, 0); }),
      Bad("repeat: axis 2 does not exist in (2, 3) f32", [&] { repeat(m, 1, 2); }),
      Bad("repeat: axis 0 does not exist in () f32", [&] { repeat(number, 1, 0); }),
      Bad("repeat: (2, 3) f32 cannot be repeated 9223372036854775807 times along axis 0", [&] { repeat(m, most, 0); }),
      Bad("repeat: there are 3 counts for axis 0 of (2, 3) f32",
          [&] {
            repeat(m, {1, 2, 3}, 0);
          }),
      Bad("repeat: the count -1 along axis 0 of (2, 3) f32 is negative",
          [&] {
            repeat(m, {1, -1}, 0);
          }),
      Bad("repeat: the count 9223372036854775807 along axis 0 of (2, 3) f32 is negative, or too large",
          [&] {
            repeat(m, {1, most}, 0);
          }),
      Bad("repeat: a tensor of shape (9223372036854775807,) is larger than any memory",
          [&] {
            repeat(m, {1, most - 1}, 0);
          }),
      Bad("tril: takes a matrix, or several, not (4,) f32", [&] { tril(v); }),
      Bad("triu: takes a matrix, or several, not () f32", [&] { triu(number); }),
      Bad("diag: takes a vector or a matrix, not () f32", [&] { diag(number); }),
      Bad("diag: takes a vector or a matrix, not (1, 1, 1) f32",
          [&] {
            diag(zeros({1, 1, 1}));
          }),
      Bad("diag: a tensor of shape (4611686018427387908, 4611686018427387908) is larger", [&] { diag(v, 1l << 62); }),
      Bad("diag: a matrix with (4,) f32 on its diagonal -9223372036854775808 is larger than any memory",
          [&] { diag(v, least); }),
      Bad("pad: there are 3 widths for the axes of (2, 3) f32",
          [&] {
            pad(m, {{1, 1}, {1, 1}, {1, 1}});
          }),
      Bad("pad: the widths -1 and 0 of axis 0 of (2, 3) f32 may not be negative; slice cuts off",
          [&] {
            pad(m, {{-1, 0}});
          }),
      Bad("pad: the widths 9223372036854775807 and 0 of axis 0 of (2, 3) f32 are larger than any memory",
          [&] {
            pad(m, {{most, 0}});
          }),
      Bad("pad: axis 0 of (0,) f32 has no elements to pad with",
          [] {
            pad(zeros({0}), {{1, 0}}, {.mode = PadMode::reflect});
          }),
      Bad("pad: axis 0 of (0,) f32 has no elements to pad with",
          [] {
            pad(zeros({0}), {{1, 0}}, {.mode = PadMode::edge});
          }),
  });
  const Tensor u;
  const std::string rest = ": an operand is an undefined tensor";
  all_fail<Error>({
      Bad("view" + rest, [&] { view(u, {1}); }),
      Bad("flatten" + rest, [&] { flatten(u); }),
      Bad("unsqueeze" + rest, [&] { unsqueeze(u, {0}); }),
      Bad("squeeze" + rest, [&] { squeeze(u); }),
      Bad("chunk" + rest, [&] { chunk(u, 1); }),
      Bad("flip" + rest, [&] { flip(u); }),
      Bad("flip" + rest, [&] { flip(u, 0); }),
      Bad("roll" + rest, [&] { roll(u, 1, 0); }),
      Bad("tile" + rest, [&] { tile(u, {1}); }),
      Bad("repeat" + rest, [&] { repeat(u, 1, 0); }),
      Bad("repeat" + rest, [&] { repeat(u, std::vector<std::int64_t>{1}, 0); }),
      Bad("tril" + rest, [&] { tril(u); }),
      Bad("triu" + rest, [&] { triu(u); }),
      Bad("diag" + rest, [&] { diag(u); }),
      Bad("pad" + rest,
          [&] {
            pad(u, {{1, 1}});
          }),
  });
}

}  // namespace reel_test
