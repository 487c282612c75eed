#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "ops/bad_input.h"
#include "ops/numbers.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       most = std::numeric_limits<std::int64_t>::max();

}  // namespace

TEST_CASE("tensors are made from lists, vectors and spans of every element type") {
  CHECK(tensor({{{1, 2}, {3, 4}, {5, 6}}, {{7, 8}, {9, 10}, {11, 12}}}).shape() == Shape{2, 3, 2});
  CHECK(values_of(tensor({{{1, 2}}, {{3, 4}}})) == std::vector<double>{1, 2, 3, 4});
  CHECK(tensor({{{true}, {false}}}).dtype() == boolean);
  CHECK(values_of(tensor({{true, false}})) == std::vector<double>{1, 0});
  CHECK(values_of(tensor(std::vector<bool>{true, false, true})) == std::vector<double>{1, 0, 1});
  std::vector<float> numbers{1, 2, 3};
  CHECK(tensor(std::span<const float>(numbers)).shape() == Shape{3});
  CHECK(tensor(numbers, {3, 1}).shape() == Shape{3, 1});
  CHECK(tensor(std::vector<Float16>{Float16(1.f)}).dtype() == f16);
  all_fail<ShapeError>({
      Bad("tensor: the rows are not equally long",
          [] {
            tensor({{1, 2}, {3}});
          }),
      Bad("tensor: the rows are not equally long",
          [] {
            tensor({{{1, 2}, {3}}});
          }),
      Bad("tensor: the matrices are not of one shape",
          [] {
            tensor({{{1, 2}}, {{3, 4}, {5, 6}}});
          }),
      Bad("tensor: 3 values do not fill the shape (2, 2)",
          [&] {
            tensor(numbers, {2, 2});
          }),
      Bad("tensor: the shape (-1, -3) has a negative size",
          [&] {
            tensor(numbers, {-1, -3});
          }),
  });
}

TEST_CASE("a range has the dtype of its numbers, and NumPy's count") {
  CHECK(arange(3).dtype() == i64);
  CHECK(arange(2, 5).dtype() == i64);
  CHECK(arange(2.5).dtype() == f32);
  CHECK(arange(0, 1, 0.25).dtype() == f32);
  CHECK(values_of(arange(2.5)) == std::vector<double>{0, 1, 2});
  CHECK(arange(-2.5).numel() == 0);
  CHECK(arange(1, 1.3, 0.1, {.dtype = f64}).numel() == 4);  // as NumPy: the quotient lies just above 3
  CHECK(values_of(arange(most - 2, most, 1)) == values_of(tensor({most - 2, most - 1})));
  CHECK(arange(least, most, most).to_vector<std::int64_t>() == std::vector<std::int64_t>{least, -1, most - 1});
  CHECK(arange(most, least, least).to_vector<std::int64_t>() == std::vector<std::int64_t>{most, -1});
  CHECK(values_of(arange(254, 258, 1, {.dtype = u8})) == std::vector<double>{254, 255, 0, 1});
}

TEST_CASE("a linspace hits both ends to the bit, however far apart they are") {
  for (double start : {0.1, -1e308, 1e-320, 3.0})
    for (double stop : {0.7, 1e308, -5e-324})
      for (std::int64_t count : {2, 3, 10, 101}) {
        CAPTURE(start, stop, count);
        std::vector<double> values = values_of(linspace(start, stop, count, {.dtype = f64}));
        CHECK(values.front() == start);
        CHECK(values.back() == stop);
        CHECK(std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); }));
      }
}

TEST_CASE("long ranges and draws are the same on every number of threads as their first elements") {
  constexpr std::int64_t count = 200'000;
  std::vector<std::int64_t> range = arange(-5, 3 * count - 5, 3).to_vector<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) REQUIRE(range[static_cast<std::size_t>(i)] == 3 * i - 5);
  auto draws = [](std::int64_t size) {
    Generator generator(4);
    RandomOptions options{.generator = &generator};
    return stack({rand({size}, options), randn({size}, options), gumbel({size}, options),
                  bernoulli(0.4, {size}, options), to(randint(-9, 9, {size}, {.generator = &generator}), f32)},
                 1);
  };
  CHECK(same_bits(slice(draws(count), 0, 0, 1000), draws(1000)));
}

TEST_CASE("bernoulli draws ones with its probability, also one for each element") {
  constexpr std::uint64_t seed = 21;
  CAPTURE(seed);
  Generator generator(seed);
  constexpr std::int64_t count = 200'000;
  for (double p : {0.0, 0.1, 0.5, 0.9, 1.0}) {
    CAPTURE(p);
    double error = 5 * std::sqrt(p * (1 - p) / count);
    Tensor ones = bernoulli(p, {count}, {.dtype = boolean, .generator = &generator});
    CHECK(std::abs(static_cast<double>(sum(ones).item<std::int64_t>()) / count - p) <= error);
    Tensor each = bernoulli(full({count}, p, {.dtype = f64}), {.generator = &generator});
    CHECK(each.dtype() == f64);
    CHECK(std::abs(mean(each).item() - p) <= error);
  }
  Tensor p = tensor({0.f, 1.f, 0.f, 1.f});
  CHECK(values_of(bernoulli(p)) == values_of(p));
  CHECK(values_of(bernoulli(transpose(reshape(p, {2, 2})))) == std::vector<double>{0, 0, 1, 1});
  Tensor weights = full({3}, 0.5);
  Tape tape;
  tape.watch(weights);
  Tensor y = sum(bernoulli(weights)) + 0 * sum(weights);
  CHECK(values_of(tape.gradient(y, weights)) == std::vector<double>{0, 0, 0});
}

TEST_CASE("integers are drawn with equal probability, also from the widest range") {
  constexpr std::uint64_t seed = 22;
  CAPTURE(seed);
  Generator generator(seed);
  constexpr std::int64_t count = 70'000;
  std::map<std::int64_t, int> counts;
  for (std::int64_t x : randint(-3, 4, {count}, {.generator = &generator}).to_vector<std::int64_t>()) ++counts[x];
  CHECK(counts.size() == 7);
  CHECK(counts.begin()->first == -3);
  CHECK(counts.rbegin()->first == 3);
  for (auto [x, times] : counts) {
    CAPTURE(x);
    CHECK(std::abs(times - count / 7) < 5 * std::sqrt(count / 7.0));
  }
  // Halves of the range, and of its lowest bit.
  double negative = 0, odd = 0;
  for (std::int64_t x : randint(least, most, {count}, {.generator = &generator}).to_vector<std::int64_t>()) {
    negative += x < 0;
    odd += x & 1;
  }
  CHECK(std::abs(negative / count - 0.5) < 5 * 0.5 / std::sqrt(count));
  CHECK(std::abs(odd / count - 0.5) < 5 * 0.5 / std::sqrt(count));
  CHECK(values_of(randint(7, 8, {3})) == std::vector<double>{7, 7, 7});
  CHECK(randint(0, 256, {9}, {.dtype = u8}).dtype() == u8);
}

TEST_CASE("a random permutation holds each number once, and each order is as likely as any other") {
  constexpr std::uint64_t seed = 23;
  CAPTURE(seed);
  Generator generator(seed);
  for (std::int64_t count : {0, 1, 7, 1000, 100'000}) {
    std::vector<std::int64_t> numbers = randperm(count, {.generator = &generator}).to_vector<std::int64_t>();
    std::sort(numbers.begin(), numbers.end());
    CHECK(numbers == arange(count).to_vector<std::int64_t>());
  }
  constexpr int trials = 12'000;
  std::map<std::vector<std::int32_t>, int> orders;
  for (int trial = 0; trial < trials; ++trial)
    ++orders[randperm(4, {.dtype = i32, .generator = &generator}).to_vector<std::int32_t>()];
  CHECK(orders.size() == 24);
  for (const auto& [order, times] : orders) CHECK(std::abs(times - trials / 24) < 5 * std::sqrt(trials / 24.0));
}

TEST_CASE("gumbel numbers have the moments of their distribution, and pick classes as softmax does") {
  constexpr std::uint64_t seed = 24;
  CAPTURE(seed);
  constexpr std::int64_t count = 200'000;
  for (DType dtype : floating_dtypes) {
    CAPTURE(name_of(dtype));
    Generator generator(seed);
    std::vector<double> g = values_of(gumbel({count}, {.dtype = dtype, .generator = &generator}));
    double total = 0, squares = 0;
    for (double x : g) {
      REQUIRE(std::isfinite(x));
      total += x;
      squares += x * x;
    }
    double average = total / count, variance = squares / count - average * average;
    // Five standard errors, from the variance π² / 6 and the fourth moment 5.4 of it, and the halves' rounding.
    constexpr double expected = 1.6449340668482264;
    double rounding = dtype == bf16 ? 0x1p-8 : dtype == f16 ? 0x1p-11 : 0;
    CHECK(std::abs(average - 0.5772156649) < 5 * std::sqrt(expected / count) + rounding);
    CHECK(std::abs(variance - expected) < 5 * expected * std::sqrt(4.4 / count) + 8 * rounding);
  }
}

TEST_CASE("what is like a tensor has its shape and dtype, whatever its layout") {
  Tensor x = transpose(zeros({2, 3}, {.dtype = f16}));
  for (const Tensor& y : {zeros_like(x), ones_like(x), full_like(x, 2), rand_like(x), randn_like(x)}) {
    CHECK(y.shape() == Shape{3, 2});
    CHECK(y.dtype() == f16);
    CHECK(y.is_contiguous());
  }
  CHECK(values_of(full_like(tensor({true, false}), 3)) == std::vector<double>{1, 1});
}

TEST_CASE("what cannot be made is named") {
  const Tensor m = zeros({2, 3}), undefined;
  all_fail<ShapeError>({
      Bad("zeros: the shape (-1,) has a negative size", [] { zeros({-1}); }),
      Bad("ones: the shape (2, -1) has a negative size",
          [] {
            ones({2, -1});
          }),
      Bad("full: the shape (-1,) has a negative size", [] { full({-1}, 1); }),
      Bad("arange: there are no -1 numbers", [] { arange(-1); }),
      Bad("arange: a step of 0 goes nowhere, from 0 to 3 by 0", [] { arange(0, 3, 0); }),
      Bad("arange: the numbers from 0 to 1 by 1e-300 are more than any memory holds", [] { arange(0, 1, 1e-300); }),
      Bad("arange: the numbers from -9223372036854775808 to 9223372036854775807 by 1 are more",
          [] { arange(least, most); }),
      Bad("arange: the numbers from 0 to inf by 1 must be finite", [] { arange(0, infinity); }),
      Bad("arange: the numbers from nan to 1 by 1 must be finite", [] { arange(NAN, 1); }),
      Bad("linspace: there are no -2 numbers", [] { linspace(0, 1, -2); }),
      Bad("linspace: the ends 0 and inf must be finite", [] { linspace(0, infinity, 2); }),
      Bad("linspace: a tensor of shape (4611686018427387904,) is larger", [] { linspace(0, 1, 1l << 62); }),
      Bad("eye: a matrix cannot have -1 rows and -1 columns", [] { eye(-1); }),
      Bad("eye: a matrix cannot have 2 rows and -3 columns", [] { eye(2, {.columns = -3}); }),
      Bad("tri: a matrix cannot have -2 rows", [] { tri(-2); }),
      Bad("one_hot: there cannot be -1 classes", [] { one_hot(tensor({0}), -1); }),
      Bad("one_hot: the indices (1, 1, 1, 1, 1, 1, 1, 1) i64 have 8 axes",
          [] {
            one_hot(zeros({1, 1, 1, 1, 1, 1, 1, 1}, {.dtype = i64}), 2);
          }),
      Bad("rand: the shape (-1,) has a negative size", [] { rand({-1}); }),
      Bad("randn: the shape (2, -1) has a negative size",
          [] {
            randn({2, -1});
          }),
      Bad("bernoulli: the shape (-1,) has a negative size", [] { bernoulli(0.5, {-1}); }),
      Bad("randint: the shape (-1,) has a negative size", [] { randint(0, 2, {-1}); }),
      Bad("randperm: there are no -1 numbers", [] { randperm(-1); }),
      Bad("randperm: a tensor of shape (9223372036854775807,) is larger", [] { randperm(most); }),
  });
  all_fail<DTypeError>({
      Bad("arange: takes plain numbers, not the tensor (2, 3) f32", [&] { arange(m); }),
      Bad("arange: the numbers from 0 to 2.5 by 1 make no i32 tensor", [] { arange(2.5, {.dtype = i32}); }),
      Bad("arange: the numbers from 0 to 2 by 1 make no bool tensor", [] { arange(2, {.dtype = boolean}); }),
      Bad("linspace: gives floating numbers, not i64", [] { linspace(0, 1, 2, {.dtype = i64}); }),
      Bad("one_hot: indices are i32 or i64, not (2, 3) f32", [&] { one_hot(m, 2); }),
      Bad("full_like: takes a plain number, not the tensor (2, 3) f32", [&] { full_like(m, m); }),
      Bad("full_like: the number 300 does not fit u8", [] { full_like(zeros({2}, {.dtype = u8}), 300); }),
      Bad("gumbel: draws floating numbers, not u8", [] { gumbel({2}, {.dtype = u8}); }),
      Bad("rand_like: takes a floating tensor, not (1,) i32", [] { rand_like(tensor({1})); }),
      Bad("randn_like: takes a floating tensor, not (1,) i32", [] { randn_like(tensor({1})); }),
      Bad("bernoulli: takes a floating tensor, not (1,) i32", [] { bernoulli(tensor({1})); }),
      Bad("bernoulli: a plain probability wants a shape: bernoulli(0.5, shape)", [] { bernoulli(0.5); }),
      Bad("randint: draws integers, not f32", [] { randint(0, 2, {2}, {.dtype = f32}); }),
      Bad("randint: the number 256 does not fit u8", [] { randint(0, 257, {2}, {.dtype = u8}); }),
      Bad("randint: the number -1 does not fit u8", [] { randint(-1, 2, {2}, {.dtype = u8}); }),
      Bad("randperm: the number 299 does not fit u8", [] { randperm(300, {.dtype = u8}); }),
  });
  all_fail<IndexError>({
      Bad("one_hot: index 3 is none of the 3 classes, for the indices (2,) i32",
          [] {
            one_hot(tensor({0, 3}), 3);
          }),
      Bad("one_hot: index -1 is none of the 3 classes", [] { one_hot(tensor({-1}), 3); }),
      Bad("one_hot: index 0 is none of the 0 classes", [] { one_hot(tensor({0}), 0); }),
  });
  all_fail<Error>({
      Bad("bernoulli: the probability 1.5 lies outside [0, 1]", [] { bernoulli(1.5, {2}); }),
      Bad("bernoulli: the probability nan lies outside [0, 1]", [] { bernoulli(NAN, {2}); }),
      Bad("bernoulli: the probability -0.5 lies outside [0, 1]",
          [] {
            bernoulli(tensor({0.5, -0.5}));
          }),
      Bad("randint: there is no integer in [2, 2)", [] { randint(2, 2, {1}); }),
      Bad("randint: there is no integer in [0, -9223372036854775808)", [] { randint(0, least, {1}); }),
      Bad("arange: an operand is an undefined tensor", [&] { arange(undefined); }),
      Bad("one_hot: an operand is an undefined tensor", [&] { one_hot(undefined, 2); }),
      Bad("ones_like: an operand is an undefined tensor", [&] { ones_like(undefined); }),
      Bad("full_like: an operand is an undefined tensor", [&] { full_like(undefined, 1); }),
      Bad("rand_like: an operand is an undefined tensor", [&] { rand_like(undefined); }),
      Bad("randn_like: an operand is an undefined tensor", [&] { randn_like(undefined); }),
      Bad("bernoulli: an operand is an undefined tensor", [&] { bernoulli(undefined); }),
  });
}

TEST_CASE("numbers in braces become a tensor of the type to which C++ converts them, to any depth") {
  Tensor mixed = tensor({1, 2.5});
  CHECK(mixed.dtype() == f64);
  CHECK(mixed.to_vector<double>() == std::vector<double>{1, 2.5});
  CHECK(tensor({1, 2.5f}).dtype() == f32);
  CHECK(tensor({true, 2}).dtype() == i32);
  CHECK(tensor({1, std::int64_t{1} << 40}).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{1, std::int64_t{1} << 40});
  CHECK(tensor(2.5).shape() == Shape{});
  CHECK(tensor(2.5).item() == 2.5);
  Tensor matrix = tensor({{1, 2.5}, {3, 4}, {5, 6}});
  CHECK(matrix.shape() == Shape{3, 2});
  CHECK(matrix.to_vector<double>() == std::vector<double>{1, 2.5, 3, 4, 5, 6});
  CHECK(tensor({{{{1}, {2.5}}}}).shape() == Shape{1, 1, 2, 1});
  CHECK(tensor({}).shape() == Shape{0});
  CHECK(tensor({}).dtype() == f32);
  // Integers beyond 2^53 are exact.
  CHECK(tensor({{std::int64_t{9007199254740993}, 1}}).to_vector<std::int64_t>()[0] == 9007199254740993);
}

TEST_CASE("a dtype can be given for numbers in braces and in vectors") {
  CHECK(tensor({1, 2}, {.dtype = bf16}).dtype() == bf16);
  CHECK(to(tensor({{1.f, 2.5f}, {3.f, 4.f}}, {.dtype = f64}), f64).to_vector<double>() ==
        std::vector<double>{1, 2.5, 3, 4});
  std::vector<float> values{1, 2.5, 3, 4};
  CHECK(tensor(values, {.dtype = f64}).to_vector<double>() == std::vector<double>{1, 2.5, 3, 4});
  CHECK(tensor(values, {2, 2}, {.dtype = f16}).shape() == Shape{2, 2});
  CHECK(tensor(values, {2, 2}, {.dtype = f16}).dtype() == f16);
  CHECK(tensor({1, 0}, {.dtype = boolean}).to_vector<bool>() == std::vector<bool>{true, false});
}

TEST_CASE("numbers in braces that make no tensor are refused") {
  int line = __LINE__ + 1;
  std::string text = error_of<ShapeError>([] { tensor({{1, 2.5}, {3}}); });
  CHECK(text == "tensor: the lists beside each other are not of one shape: (2,) and (1,); at " +
                    to_string(Location{__FILE__, line}));
  CHECK_THAT(error_of<ShapeError>([] { tensor({{1, 2.5}, 3}); }), contains("not of one shape: (2,) and ()"));
  CHECK_THAT(error_of<DTypeError>([] {
               tensor({1, 2.5}, {.dtype = i32});
             }),
             contains("tensor: floating numbers do not fit into i32; round them, or give a floating dtype"));
  CHECK_THAT(error_of<ShapeError>([] { tensor({{{{{{{{{1}}}}}}}}}); }), contains("nested deeper than 8 times"));
}

}  // namespace reel_test
