#include <reel/reel.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ops/bad_input.h"
#include "ops/numbers.h"

namespace reel_test {

using namespace reel;

namespace {

const Tensor undefined, m = zeros({2, 3}), v = zeros({4}), ints = tensor({0, 1, 2});

using Doubles = std::vector<double>;
using Integers = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("elements by rank are those of a stable sort, in rows of every length, layout and dtype") {
  constexpr std::uint64_t seed = 41;
  constexpr ToleranceOptions exactly{.relative = 0, .absolute = 0, .equal_nan = true};
  CAPTURE(seed);
  manual_seed(seed);
  for (std::int64_t length : {1, 2, 7, 64, 129, 256, 257, 1009, 5000})
    for (DType dtype : {f32, f64, f16, i64, i32, u8})
      for (int kind = 0; kind < 4; ++kind) {
        CAPTURE(length, name_of(dtype), kind);
        // Numbers of all sizes, many equal ones, all equal, and some NaN.
        Tensor drawn = kind == 0 ? randn({length, 3}) * exp(randn({length, 3}) * 8) : floor(randn({length, 3}) * 2);
        if (kind == 2) drawn = zeros_like(drawn);
        if (kind == 3 && is_floating(dtype)) drawn = where(rand_like(drawn) < 0.1, nan, drawn);
        Tensor x = to(kind == 0 ? clamp(drawn, -60000, 60000) : drawn, dtype), rows = flip(transpose(x, 0, 1), 1);
        auto [sorted, order] = sort(rows, 1);
        for (std::int64_t k : {std::int64_t{1}, (length + 1) / 2, length}) {
          auto [values, indices] = kthvalue(rows, k, 1);
          CHECK(allclose(values, select(sorted, 1, k - 1), exactly));
          CHECK(indices.to_vector<std::int64_t>() == select(order, 1, k - 1).to_vector<std::int64_t>());
        }
        // A fraction as a tensor takes whole sorted rows.
        for (double q : {0.0, 0.3, 0.5, 1.0})
          for (auto interpolation : {QuantileInterpolation::linear, QuantileInterpolation::lower,
                                     QuantileInterpolation::nearest, QuantileInterpolation::midpoint}) {
            CAPTURE(q);
            QuantileOptions options{.interpolation = interpolation};
            Tensor found = quantile(rows, q, 1, options),
                   whole = quantile(rows, full({}, q, {.dtype = f64}), 1, options);
            CHECK(allclose(found, whole, exactly));
          }
      }
}

TEST_CASE("many values are found in a sorted row of any layout") {
  constexpr std::uint64_t seed = 42;
  CAPTURE(seed);
  manual_seed(seed);
  for (std::int64_t size : {0, 1, 2, 3, 8, 665})
    for (std::int64_t count : {1, 7, 8, 9, 100})
      for (bool right : {false, true}) {
        CAPTURE(size, count, right);
        Tensor drawn = floor(randn({2 * size}) * 10), values = floor(randn({count, 2}) * 12);
        Tensor row = slice(sort(drawn).values, 0, 0, 2 * size, 2), wanted = select(values, 1, 1);
        std::vector<float> sorted = row.to_vector<float>();
        std::vector<std::int64_t> expected;
        for (float value : wanted.to_vector<float>()) {
          auto found = right ? std::upper_bound(sorted.begin(), sorted.end(), value)
                             : std::lower_bound(sorted.begin(), sorted.end(), value);
          expected.push_back(found - sorted.begin());
        }
        CHECK(searchsorted(row, wanted, {.right = right}).to_vector<std::int64_t>() == expected);
      }
}

TEST_CASE("quantiles of integers, infinities and NaN") {
  CHECK(quantile(tensor({4, 1, 2}), 0.25).item() == 1.5);
  CHECK(quantile(tensor({4, 1, 2}), 0.25).dtype() == f32);
  CHECK(quantile(doubles({1, infinity, infinity}), 0.75).item() == infinity);
  CHECK(quantile(doubles({-infinity, -infinity, 3}), 0.5).item() == -infinity);
  CHECK(std::isnan(quantile(doubles({1, nan, 3}), 0).item()));
  CHECK(quantile(doubles({7}), doubles({0, 0.5, 1})).to_vector<double>() == Doubles{7, 7, 7});
  Tensor x = reshape(arange(12, {.dtype = f64}), {3, 4});
  CHECK(quantile(x, doubles({0, 1}), 0).shape() == Shape{2, 4});
  CHECK(quantile(x, doubles({0, 1}), {0, 1}, {.keepdims = true}).shape() == Shape{2, 1, 1});
  CHECK(quantile(x, 0.5, {0, 1}).item() == 5.5);
  CHECK(quantile(doubles({0, 10}), 0.25, {.interpolation = QuantileInterpolation::nearest}).item() == 0);
  CHECK(quantile(doubles({0, 10}), 0.5, {.interpolation = QuantileInterpolation::nearest}).item() == 0);
  CHECK(quantile(zeros({0, 3}), 0.5, 1).shape() == Shape{0});
}

TEST_CASE("cumulative extremes stay at NaN and name the last of equals") {
  auto [values, indices] = cummax(doubles({1, 3, 3, nan, 9, nan}), 0);
  CHECK(indices.to_vector<std::int64_t>() == Integers{0, 1, 2, 3, 3, 5});
  CHECK(values(slice(0, 3)).to_vector<double>() == Doubles{1, 3, 3});
  CHECK(std::isnan(values(4).item()));
  CHECK(cummin(doubles({2, -infinity, 0}), 0).values.to_vector<double>() == Doubles{2, -infinity, -infinity});
  CHECK(cummax(tensor({false, true, false}), -1).values.to_vector<bool>() == std::vector<bool>{false, true, true});
}

TEST_CASE("every NaN is a value of its own, and zeros of both signs are one") {
  auto [values, inverse, counts] = unique(doubles({nan, 1, 0.0, -0.0, nan}));
  CHECK(values.numel() == 4);
  CHECK(counts.to_vector<std::int64_t>() == Integers{2, 1, 1, 1});
  CHECK(inverse.to_vector<std::int64_t>() == Integers{2, 1, 0, 0, 3});
  Tensor rows = tensor({{1.0, nan}, {1.0, 2.0}, {1.0, nan}, {1.0, 2.0}});
  CHECK(unique(rows, 0).counts.to_vector<std::int64_t>() == Integers{2, 1, 1});
  CHECK(unique(zeros({3, 0}), 0).counts.to_vector<std::int64_t>() == Integers{3});
  Tensor x = doubles({1, 2});
  Tape tape;
  tape.watch(x);
  Tensor found = unique(x).values;
  CHECK_THAT(error_of<TapeError>([&] { tape.gradient(sum(found), x); }), contains("nothing that is tracked"));
}

TEST_CASE("histograms do not count NaN, and infinities only where the range is given") {
  Tensor x = doubles({nan, -1, 0, 0.5, 1, infinity});
  CHECK(histc(x, {.bins = 2, .low = 0, .high = 1}).to_vector<double>() == Doubles{1, 2});
  CHECK(bincount(to(tensor({1, 1}), u8)).to_vector<std::int64_t>() == Integers{0, 2});
  CHECK(bincount(ints, {.weights = tensor({true, true, false})}).to_vector<std::int64_t>() == Integers{1, 1, 0});
  all_fail<Error>({
      Bad("histc: the bins from nan to nan are no finite range, for (6,) f64", [&] { histc(x); }),
      Bad("histc: the bins from 2 to 1 are no finite range", [&] { histc(x, {.low = 2, .high = 1}); }),
  });
}

TEST_CASE("buckets have ends, and NaN is behind the last") {
  Tensor ends = doubles({1, 3});
  CHECK(bucketize(doubles({0, 1, 2, 3, 4, nan}), ends).to_vector<std::int64_t>() == Integers{0, 0, 1, 1, 2, 2});
  CHECK(bucketize(doubles({0, 1, 2, 3}), ends, {.right = true}).to_vector<std::int64_t>() == Integers{0, 1, 1, 2});
  CHECK(kthvalue(doubles({nan, 1, 2}), 3).indices.item() == 0);
}

TEST_CASE("diagonals are views, and what is embedded comes back") {
  Tensor x = reshape(arange(24, {.dtype = f64}), {2, 3, 4});
  CHECK(diagonal(x, {.diagonal = 1}).strided_data<double>() == x.data<double>() + 1);
  Tensor y = randn({2, 3}, {.dtype = f64});
  for (std::int64_t k : {-2, 0, 3})
    CHECK(same_bits(
        diagonal(diag_embed(y, {.diagonal = k, .first = 0, .second = 1}), {.diagonal = k, .first = 0, .second = 1}),
        y));
  CHECK(trace(tensor({{1, 2}, {3, 4}})).item() == 5);
}

TEST_CASE("bad operands of ordering, products and grids are named") {
  const std::string rest = ": an operand is an undefined tensor";
  all_fail<Error>({
      Bad("quantile" + rest, [&] { quantile(undefined, 0.5); }),
      Bad("quantile: q is 1.5, which is outside [0, 1]", [&] { quantile(v, 1.5); }),
      Bad("quantile: an element of q (2,) f64 is outside [0, 1]",
          [&] {
            quantile(v, doubles({0.5, nan}));
          }),
      Bad("cummax" + rest, [&] { cummax(undefined, 0); }),
      Bad("cummin" + rest, [&] { cummin(undefined, 0); }),
      Bad("unique" + rest, [&] { unique(undefined); }),
      Bad("kthvalue" + rest, [&] { kthvalue(undefined, 1); }),
      Bad("bucketize" + rest, [&] { bucketize(v, undefined); }),
      Bad("bincount" + rest, [&] { bincount(undefined); }),
      Bad("histc" + rest, [&] { histc(undefined); }),
      Bad("tensordot" + rest, [&] { tensordot(m, undefined); }),
      Bad("kron" + rest, [&] { kron(undefined, m); }),
      Bad("cross" + rest, [&] { cross(m, undefined); }),
      Bad("trace" + rest, [&] { trace(undefined); }),
      Bad("diagonal" + rest, [&] { diagonal(undefined); }),
      Bad("diag_embed" + rest, [&] { diag_embed(undefined); }),
      Bad("meshgrid" + rest,
          [&] {
            meshgrid({v, undefined});
          }),
  });
  all_fail<IndexError>({Bad("bincount: 9223372036854775807 wants more bins than a tensor can have, in (2,) i64",
                            [&] {
                              bincount(tensor({0, std::numeric_limits<std::int64_t>::max()}));
                            }),
                        Bad("bincount: -1 is negative and has no bin, in (2,) i32", [&] {
                          bincount(tensor({3, -1}));
                        })});
  all_fail<ShapeError>({
      Bad("quantile: q is a number or a vector, not (2, 3) f32", [&] { quantile(v, m); }),
      Bad("quantile: axis 2 does not exist", [&] { quantile(m, 0.5, 2); }),
      Bad("quantile: x (1, 1, 1, 1, 1, 1, 1, 2) f32 has 8 axes already: there is no room for that of 2 quantiles",
          [&] {
            quantile(zeros({1, 1, 1, 1, 1, 1, 1, 2}), tensor({0.1, 0.9}));
          }),
      Bad("quantile: ", [&] { quantile(zeros({0}), 0.5); }),
      Bad("cummax: axis 1 does not exist", [&] { cummax(v, 1); }),
      Bad("cummin: axis 0 does not exist", [&] { cummin(zeros({}), 0); }),
      Bad("unique: axis 2 does not exist", [&] { unique(m, 2); }),
      Bad("kthvalue: there is no 5-th smallest element along axis 0 of (4,) f32", [&] { kthvalue(v, 5); }),
      Bad("kthvalue: there is no 0-th smallest element along axis 1 of (2, 3) f32", [&] { kthvalue(m, 0); }),
      Bad("bucketize: the boundaries (2, 3) f32 are not a vector", [&] { bucketize(v, m); }),
      Bad("bincount: takes a vector, not (1, 3) i32", [&] { bincount(unsqueeze(ints, 0)); }),
      Bad("bincount: the weights (4,) do not have the shape of x (3,)", [&] { bincount(ints, {.weights = v}); }),
      Bad("bincount: the least number of bins is -1, which is negative",
          [&] { bincount(ints, {.minimum_length = -1}); }),
      Bad("histc: there cannot be 0 bins", [&] { histc(v, {.bins = 0}); }),
      Bad("tensordot: axis 1 of a (2, 3) and axis 0 of b (4,) have different sizes", [&] { tensordot(m, v, 1); }),
      Bad("tensordot: 2 axes cannot be summed over, of a (2, 3) and b (4,)", [&] { tensordot(m, v); }),
      Bad("tensordot: 1 axes of a cannot be summed with 2 of b",
          [&] {
            tensordot(m, m, {0}, {0, 1});
          }),
      Bad("tensordot: axis 2 does not exist", [&] { tensordot(m, m, {2}, {0}); }),
      Bad("kron: takes up to 4 axes, not a (1, 1, 1, 1, 1)",
          [&] {
            kron(zeros({1, 1, 1, 1, 1}), v);
          }),
      Bad("cross: a (2, 3) and b (1,) do not both have 3 elements along axis 1", [&] { cross(m, zeros({1})); }),
      Bad("cross: shapes do not broadcast: a (2, 3), b (4,)", [&] { cross(m, v); }),
      Bad("trace: takes a matrix, or several, not (4,) f32", [&] { trace(v); }),
      Bad("diagonal: takes a matrix, or several, not (4,) f32", [&] { diagonal(v); }),
      Bad("diagonal: axes 1 and -1 of 2 are the same one", [&] { diagonal(m, {.first = 1}); }),
      Bad("diagonal: axis 2 does not exist among 2 axes", [&] { diagonal(m, {.first = 2}); }),
      Bad("diag_embed: takes one to 7 axes, not () f32", [&] { diag_embed(zeros({})); }),
      Bad("diag_embed: axis -4 does not exist among 3 axes", [&] { diag_embed(m, {.first = -4}); }),
      Bad("meshgrid: tensor 1 is not a vector: (2, 3) f32",
          [&] {
            meshgrid({v, m});
          }),
      Bad("meshgrid: takes one to 8 tensors, not 0", [&] { meshgrid(std::span<const Tensor>()); }),
      Bad("logspace: there cannot be -1 numbers", [&] { logspace(0, 1, -1); }),
      Bad("logspace: the ends 0 and inf are not finite", [&] { logspace(0, infinity, 3); }),
  });
  all_fail<DTypeError>({
      Bad("quantile: ", [&] { quantile(v, ints); }),
      Bad("bincount: takes integers, not (4,) f32; convert it with to(x, i64)", [&] { bincount(v); }),
      Bad("histc: ", [&] { histc(ints); }),
      Bad("cross: takes numbers, not bools; convert them with to(x, i32)", [&] { cross(ints > 0, ints > 0); }),
      Bad("meshgrid: tensor 1 is (3,) i32, not of the first one's dtype f32",
          [&] {
            meshgrid({v, ints});
          }),
      Bad("logspace: the dtype is floating, not i32", [&] { logspace(0, 1, 2, {.dtype = i32}); }),
  });
}

}  // namespace reel_test
