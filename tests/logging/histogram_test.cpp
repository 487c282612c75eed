#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <random>
#include <vector>

#include <reel/reel.h>

#include "catch.h"
#include "logging/histogram.h"

using namespace reel;
using logging::Histogram;
using logging::histogram_of;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// The number of values in (low, high].
double between(const std::vector<double>& values, double low, double high) {
  double count = 0;
  for (double value : values) count += value > low && value <= high;
  return count;
}

// No limit is a value here, so that it does not matter on which side of it a value belongs.
void check_buckets(const Histogram& found, const std::vector<double>& values) {
  double low = -infinity;
  for (std::size_t i = 0; i < found.limits.size(); ++i) {
    REQUIRE(found.limits[i] > low);
    REQUIRE(found.in_bucket[i] == between(values, low, found.limits[i]));
    low = found.limits[i];
  }
  CHECK(found.limits.back() >= found.max);
}

std::vector<double> random_values(std::size_t size) {
  unsigned seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> mantissa;
  std::uniform_int_distribution<int> exponent(-20, 3);
  std::vector<double> values;
  // Draws floats, so that both dtypes hold them exactly; no power of two has this form.
  while (values.size() < size) {
    auto value = static_cast<float>(std::ldexp(mantissa(generator), exponent(generator)));
    int ignored;
    if (std::frexp(value, &ignored) * 16 != std::trunc(std::frexp(value, &ignored) * 16)) values.push_back(value);
  }
  return values;
}

}  // namespace

TEST_CASE("the buckets of a histogram count the elements between their limits") {
  for (std::size_t size : {1, 7, 1000, 70000}) {
    std::vector<double> values = random_values(size);
    double sum = 0, squares = 0;
    for (double value : values) {
      sum += value;
      squares += value * value;
    }
    for (DType dtype : {f32, f64}) {
      Histogram found = histogram_of(to(tensor(values), dtype), {});
      check_buckets(found, values);
      CHECK(found.count == static_cast<std::int64_t>(size));
      CHECK(found.min == *std::min_element(values.begin(), values.end()));
      CHECK(found.max == *std::max_element(values.begin(), values.end()));
      CHECK(found.sum == Approx(sum).margin(1e-9));
      CHECK(found.sum_of_squares == Approx(squares));
    }
  }
}

TEST_CASE("a bucket of a histogram is at most an eighth of its magnitude wide near the largest ones") {
  Histogram found = histogram_of(arange(1, 1000), {});
  for (std::size_t i = 1; i < found.limits.size(); ++i)
    if (found.limits[i - 1] >= 4) CHECK(found.limits[i] - found.limits[i - 1] <= found.limits[i - 1] / 8);
}

TEST_CASE("a histogram leaves out elements that are not finite and counts them") {
  float nan = std::numeric_limits<float>::quiet_NaN(), large = std::numeric_limits<float>::infinity();
  Histogram found = histogram_of(tensor({1.5f, nan, large, -large, nan, 0.0f, -3.0f}), {});
  CHECK(found.count == 3);
  CHECK(found.nans == 2);
  CHECK(found.infinities == 2);
  CHECK(found.min == -3);
  CHECK(found.max == 1.5);
  CHECK(found.sum == -1.5);
  CHECK(std::isfinite(found.limits.back()));
}

TEST_CASE("histograms of the largest numbers, of zeros and of no elements have finite limits") {
  double largest = std::numeric_limits<double>::max();
  CHECK(histogram_of(tensor({largest, -largest}), {}).limits.back() == largest);
  CHECK(histogram_of(zeros({5}), {}).in_bucket == std::vector<double>{5});
  Histogram empty = histogram_of(zeros({0, 3}), {});
  CHECK(empty.limits.size() == 1);
  CHECK(empty.count == 0);
}

TEST_CASE("a histogram takes tensors of every dtype, and strided ones") {
  for (DType dtype : {f32, f64, bf16, f16, i32, i64, u8, boolean, i8, i16})
    CHECK(histogram_of(to(tensor({0.0f, 1.0f, 1.0f}), dtype), {}).sum == 2);
  CHECK(histogram_of(transpose(reshape(arange(6.0f), {2, 3})), {}).sum == 15);
}
