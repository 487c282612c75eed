#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "catch.h"
#include "kernels/kernel_table.h"
#include "ops/numbers.h"
#include "ops/reduce/gradient_of.h"
#include "ops/reduce/random_view.h"
#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr unsigned seed = 4611;

// Calls f(line) with the places, in row-major order, of the elements of each line along an axis.
void for_each_line(const Shape& shape, int axis, const std::function<void(const std::vector<std::size_t>&)>& f) {
  std::size_t inner = 1, length = static_cast<std::size_t>(shape[axis]), all = static_cast<std::size_t>(shape.numel());
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= static_cast<std::size_t>(shape[i]);
  std::vector<std::size_t> line(length);
  for (std::size_t first = 0; first < all; ++first) {
    if (first / inner % length != 0) continue;
    for (std::size_t i = 0; i < length; ++i) line[i] = first + i * inner;
    f(line);
  }
}

struct Scan {
  const char* name;
  Tensor (*run)(const Arg& x, int axis);
  bool multiplies;
};
const Scan scans[] = {{"cumsum", cumsum, false}, {"cumprod", cumprod, true}};

// The number of wrong elements of a scan of floating numbers: each is rounded once from what is accumulated in f64, unless it
// overflows.
int wrong_numbers(const Scan& scan, const Tensor& x, const Tensor& y, int axis) {
  std::vector<double> from = values_of(x), found = values_of(y);
  bool is_f16 = x.dtype() == f16, is_f64 = x.dtype() == f64;
  double smallest = is_f16 ? 0x1p-14 : is_f64 ? 0x1p-1022 : 0x1p-126, unit = last_place(x.dtype());
  double most = is_f16 ? 65504 : is_f64 ? 0x1p1023 : 0x1p127;
  int wrong = 0;
  for_each_line(x.shape(), axis, [&](const std::vector<std::size_t>& line) {
    long double state = scan.multiplies ? 1 : 0, size = state, terms = 0;
    bool underflows = false;  // f64 loses digits then, which a long double keeps
    for (std::size_t place : line) {
      state = scan.multiplies ? state * from[place] : state + from[place];
      size = scan.multiplies ? std::abs(state) : size + std::abs(from[place]);
      long double bound = 0.5001L * unit * std::max<long double>(std::abs(state), smallest) + ++terms * 0x1p-53L * size;
      underflows = underflows || (scan.multiplies && is_f64 && std::abs(state) < smallest);
      wrong += !underflows && std::abs(state) < most && !(std::abs(found[place] - state) <= bound);
    }
  });
  return wrong;
}

// Integers wrap around.
int wrong_integers(const Scan& scan, const Tensor& x, const Tensor& y, int axis) {
  std::vector<std::int64_t> from = to(x, i64).to_vector<std::int64_t>(), found = y.to_vector<std::int64_t>();
  int wrong = 0;
  for_each_line(x.shape(), axis, [&](const std::vector<std::size_t>& line) {
    std::uint64_t state = scan.multiplies;
    for (std::size_t place : line) {
      auto element = static_cast<std::uint64_t>(from[place]);
      state = scan.multiplies ? state * element : state + element;
      wrong += found[place] != static_cast<std::int64_t>(state);
    }
  });
  return wrong;
}

int wrong_extremes(bool largest, const Tensor& x, const ValuesAndIndices& y, int axis) {
  std::vector<double> from = values_of(x), found = values_of(y.values);
  std::vector<std::int64_t> indices = y.indices.to_vector<std::int64_t>();
  int wrong = 0;
  for_each_line(x.shape(), axis, [&](const std::vector<std::size_t>& line) {
    std::size_t best = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      double here = from[line[i]], before = from[line[best]];
      if (std::isnan(here) || (largest ? here >= before : here <= before)) best = i;
      double expected = from[line[best]];
      wrong += indices[line[i]] != static_cast<std::int64_t>(best);
      wrong += std::isnan(expected) ? !std::isnan(found[line[i]]) : found[line[i]] != expected;
    }
  });
  return wrong;
}

// Few distinct numbers, so that many are equal; sometimes NaN among them, or a line that rises or falls.
Tensor with_ties(const Tensor& x, int draw) {
  Tensor few = floor(x);
  if (draw % 3 == 1) few = where(few == -9.0, nan, few);
  return draw % 4 == 2 ? cumsum(few, -1) : few;
}

}  // namespace

TEST_CASE("cumulative sums and products of every dtype, layout and axis are rounded once from f64") {
  INFO("seed " << seed);
  std::mt19937 random(seed);
  manual_seed(seed);
  RandomView view(random);
  for (int i = 0; i < 60; ++i)
    for (DType dtype : {f32, f64, bf16, f16, i64, i32, u8, boolean})
      for (const Scan& scan : scans) {
        Tensor x = view(dtype, [&](const Tensor& drawn) { return scan.multiplies ? drawn * 0.4 : drawn; });
        for (int axis = 0; axis < x.rank(); ++axis) {
          CAPTURE(i, scan.name, name_of(dtype), to_string(x.shape()), to_string(x.strides()), axis);
          Tensor y = scan.run(x, axis);
          CHECK((is_floating(dtype) ? wrong_numbers(scan, x, y, axis) : wrong_integers(scan, x, y, axis)) == 0);
        }
      }
}

TEST_CASE("cumulative extremes of every dtype, layout and axis are the last of equals, and the last NaN after one") {
  INFO("seed " << seed);
  std::mt19937 random(seed);
  manual_seed(seed);
  RandomView view(random);
  for (int i = 0; i < 60; ++i)
    for (DType dtype : {f32, f64, bf16, f16, i64, i32, i8, boolean}) {
      Tensor x = view(dtype, [&](const Tensor& drawn) { return is_floating(dtype) ? with_ties(drawn, i) : drawn; });
      for (int axis = 0; axis < x.rank(); ++axis) {
        CAPTURE(i, name_of(dtype), to_string(x.shape()), to_string(x.strides()), axis);
        CHECK(wrong_extremes(true, x, cummax(x, axis), axis) == 0);
        CHECK(wrong_extremes(false, x, cummin(x, axis), axis) == 0);
      }
    }
}

TEST_CASE("scans of numbers at the ends of their dtypes") {
  std::vector<float> many(100, -std::numeric_limits<float>::infinity());
  auto [values, indices] = cummax(tensor(many), 0);
  CHECK(indices.to_vector<std::int64_t>()[99] == 99);
  CHECK(values.to_vector<float>()[99] == many[0]);
  Tensor lowest = full({40, 3}, std::numeric_limits<std::int64_t>::min(), {.dtype = i64});
  for (int axis : {0, 1}) CHECK(wrong_extremes(true, lowest, cummax(lowest, axis), axis) == 0);
  // Zeros of both signs are equal, and each is its own value.
  Tensor zeros_of_both = tile(doubles({0.0, -0.0}), {20});
  CHECK(cummax(zeros_of_both, 0).indices.to_vector<std::int64_t>()[39] == 39);
  CHECK(same_bits(cummin(zeros_of_both, 0).values, zeros_of_both));
  // Sums and products of f32 whose factors reach its ends.
  Tensor wide = tensor(std::vector<float>{3e38f, 3e38f, 3e38f, 3e38f, 1e-38f, 1e-38f, 1e-38f, 1e-38f});
  std::vector<float> products = tile(wide, {5}).to_vector<float>();
  double state = 1;
  std::vector<float> found = cumprod(tile(wide, {5}), 0).to_vector<float>();
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(static_cast<float>(state *= products[i])));
  Tensor large = tile(doubles({1e200, 1e-200, 1e-200, 1e200}), {8});
  for (double product : values_of(cumprod(large, 0))) CHECK(std::isfinite(product));
}

TEST_CASE("scans along an axis have the bits that they have stacked along a new first axis") {
  INFO("seed " << seed);
  std::mt19937 random(seed);
  manual_seed(seed);
  RandomView view(random);
  for (int i = 0; i < 120; ++i) {
    Tensor x = view(i % 3 == 0 ? f64 : i % 3 == 1 ? f32 : bf16), other = randn(x.shape());
    for (const Scan& scan : scans)
      for (int axis = 0; axis < x.rank(); ++axis) {
        CAPTURE(i, scan.name, to_string(x.shape()), to_string(x.strides()), axis);
        Tensor together = scan.run(stack({to(other, x.dtype()), x, x}, 0), axis + 1);
        CHECK(same_bits(together(1), scan.run(x, axis)));
        CHECK(same_bits(scan.run(contiguous(x), axis), scan.run(x, axis)));
      }
  }
}

TEST_CASE("scans of nothing, of one element and of long lines have their closed forms") {
  for (int axis : {0, 1, 2}) {
    Tensor nothing = zeros({3, 0, 2});
    CHECK(cumsum(nothing, axis).shape() == Shape{3, 0, 2});
    CHECK(cummax(nothing, axis).indices.shape() == Shape{3, 0, 2});
  }
  CHECK(values_of(cummin(full({1}, 7.0), 0).values) == std::vector<double>{7});
  for (std::int64_t length : {15, 16, 17, 2047, 2048, 2049, 100003}) {
    CAPTURE(length);
    Tensor order = arange(length, {.dtype = f32}), ones_of = ones({length}, {.dtype = i64});
    CHECK(same_bits(cumsum(ones({length})), order + 1.0));
    CHECK(same_bits(cumsum(ones_of), to(order, i64) + 1));
    CHECK(
        same_bits(cumprod(where(to(order, i64) % 2 == 0, -1.0, 1.0))(-1), full({}, (length + 1) / 2 % 2 ? -1.0 : 1.0)));
    CHECK(same_bits(cummax(order, 0).indices, to(order, i64)));
    CHECK(same_bits(cummin(order, 0).indices, zeros({length}, {.dtype = i64})));
    CHECK(same_bits(cummax(flip(order, 0), 0).values, full({length}, static_cast<double>(length - 1))));
  }
}

TEST_CASE("the first factor of a recurrence counts for nothing, whatever it is") {
  std::mt19937 random(seed);
  for (const Shape& shape : {Shape{6}, Shape{5, 4}, Shape{3, 5, 2}, Shape{4, 700}, Shape{700, 4}, Shape{3, 300, 5}})
    for (int axis = 0; axis < shape.rank(); ++axis)
      for (DType dtype : {f32, f64})
        for (bool backwards : {false, true}) {
          CAPTURE(to_string(shape), axis, name_of(dtype), backwards);
          std::uniform_real_distribution<double> number(-1, 1);
          std::vector<double> factors, terms, expected(static_cast<std::size_t>(shape.numel()));
          for (std::int64_t i = 0; i < shape.numel(); ++i) {
            factors.push_back(number(random));
            terms.push_back(number(random));
          }
          Tensor a = to(tensor(factors, shape), dtype), b = to(tensor(terms, shape), dtype);
          std::int64_t first = backwards ? shape[axis] - 1 : 0;
          Tensor y = zeros(shape, {.dtype = dtype}), of_nan = zeros(shape, {.dtype = dtype});
          Tensor nan = full(slice(a, axis, first, first + 1).shape(), std::nan(""), {.dtype = dtype});
          Tensor a_of_nan = concat({slice(a, axis, 0, first), nan, slice(a, axis, first + 1)}, axis);
          detail::kernels(cpu).recurrence(y.body(), a.body(), b.body(), axis, backwards);
          detail::kernels(cpu).recurrence(of_nan.body(), a_of_nan.body(), b.body(), axis, backwards);
          CHECK(same_bits(of_nan, y));
          std::vector<double> from = values_of(a), added = values_of(b), found = values_of(y);
          double most = 0;
          for_each_line(shape, axis, [&](std::vector<std::size_t> line) {
            if (backwards) std::ranges::reverse(line);
            double state = 0;
            for (std::size_t place : line) {
              state = added[place] + (place == line[0] ? 0 : from[place] * state);
              most = std::max(most, std::abs(found[place] - state));
            }
          });
          CHECK(most <= (dtype == f32 ? 1e-6 : 1e-13));
        }
}

TEST_CASE("gradients of cumulative extremes go to their elements, to the second order") {
  Tensor x = doubles({3, 1, 4, 4, 5, 2});
  Tape outer;
  outer.watch(x);
  Tensor first;
  {
    Tape inner;
    inner.watch(x);
    Tensor y = cummax(x, 0).values;
    first = inner.gradient(sum(y * y * y), x);
  }
  // Elements 0, 2, 3 and 4 are the largest 2, 1, 1 and 2 times.
  CHECK(values_of(first) == std::vector<double>{2 * 27, 0, 48, 48, 2 * 75, 0});
  CHECK(values_of(outer.gradient(sum(first), x)) == std::vector<double>{2 * 18, 0, 24, 24, 2 * 30, 0});
}

TEST_CASE("the gradient of a running product of halves is exact where the product underflows and later sums overflow") {
  // y₃ = 2⁻³² is 0 in f16; the sum of the later products without those before it exceeds f16's largest number.
  const Values factors{0x1p-8, 0x1p-8, 0x1p-8, 0x1p-8, 0x1p8, 0x1p8, 0x1p8, 0x1p8};
  for (DType dtype : {f16, bf16}) {
    CAPTURE(name_of(dtype));
    Values d = gradient_of(to(tensor(factors), dtype), [](const Tensor& a) { return sum(cumprod(a)); });
    for (std::size_t i = 0; i < factors.size(); ++i) {
      double before = 1, expected = 0;
      for (std::size_t k = 0; k < i; ++k) before *= factors[k];
      for (std::size_t j = i; j < factors.size(); ++j) {
        expected += before;
        if (j + 1 < factors.size()) before *= factors[j + 1];
      }
      CAPTURE(i);
      CHECK(d[i] == Approx(expected).epsilon(2 * last_place(dtype)));
    }
  }
}

TEST_CASE("the gradient of logcumsumexp of many halves is as exact as one rounding") {
  // The weight of element i in each later result j is 1 / (j + 1).
  constexpr std::int64_t count = 5000;
  for (DType dtype : {f16, bf16}) {
    CAPTURE(name_of(dtype));
    Values d = gradient_of(full({count}, 3, {.dtype = dtype}), [](const Tensor& a) { return sum(logcumsumexp(a, 0)); });
    double expected = 0;
    for (std::int64_t i = count - 1; i >= 0; --i) {
      expected += 1 / static_cast<double>(i + 1);
      REQUIRE(d[static_cast<std::size_t>(i)] == Approx(expected).epsilon(last_place(dtype)));
    }
  }
}

TEST_CASE("logcumsumexp neither overflows nor makes NaN of infinities, and neither does its gradient") {
  Values y = values_of(logcumsumexp(doubles({-infinity, -infinity, 1000, 1000, -1000}), 0));
  CHECK(y[0] == -infinity);
  CHECK(y[1] == -infinity);
  CHECK(y[2] == 1000);
  CHECK(y[3] == Approx(1000 + std::log(2)));
  CHECK(y[4] == Approx(1000 + std::log(2)));
  // The elements weigh 0, 0, 1 + ½ + ½, ½ + ½ and 0 in the sum of the finite results.
  Values d = gradient_of(doubles({-infinity, -infinity, 1000, 1000, -1000}),
                         [](const Tensor& a) { return sum(slice(logcumsumexp(a, 0), 0, 2)); });
  const double expected[] = {0, 0, 2, 1, 0};
  for (std::size_t i = 0; i < 5; ++i) CHECK(d[i] == Approx(expected[i]));
}

}  // namespace reel_test
