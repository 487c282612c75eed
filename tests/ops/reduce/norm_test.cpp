#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "catch.h"
#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr std::uint64_t seed = 20261129;
constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

// By long doubles, whose exponents hold the squares of all doubles.
double norm_of(const std::vector<double>& x, double p) {
  long double sum = 0, largest = 0, smallest = std::numeric_limits<long double>::infinity();
  for (double value : x) {
    long double size = std::abs(static_cast<long double>(value));
    sum += p == 0 ? (size != 0) : std::pow(size, static_cast<long double>(p));
    largest = std::max(largest, size);
    smallest = std::min(smallest, size);
  }
  if (std::isinf(p)) return static_cast<double>(p > 0 ? largest : smallest);
  return static_cast<double>(p == 0 ? sum : std::pow(sum, 1 / static_cast<long double>(p)));
}

}  // namespace

TEST_CASE("zeros add nothing to a norm of a small power") {
  for (DType dtype : {f32, f64})
    for (double p : {0.01, 0.5, 3.0}) {
      CAPTURE(name_of(dtype), p);
      Tensor x = concat({full({1}, 2.0, {.dtype = dtype}), zeros({1000}, {.dtype = dtype})});
      CHECK(norm(x, all_axes, {.p = p}).item() == Approx(2));
    }
}

TEST_CASE("norms along any axis of any layout") {
  CAPTURE(seed);
  manual_seed(seed);
  for (DType dtype : floating_dtypes)
    for (const Shape& shape :
         {Shape{1, 5}, Shape{5, 1}, Shape{3, 7}, Shape{37, 64}, Shape{64, 37}, Shape{5, 257}, Shape{301, 19}})
      for (double p : {0.0, 1.0, 2.0, 3.0, 0.5, -1.0, infinity, -infinity})
        for (int axis : {0, 1}) {
          CAPTURE(name_of(dtype), to_string(shape), p, axis);
          if (dtype == f16 && p == 0.5) continue;  // its range is too small
          Tensor x =
              to(rand(shape, {.dtype = f64}) * 2 + 0.25, dtype) * to(to(rand(shape) > 0.5f, dtype) * 2 - 1, dtype);
          Array values = array_of(x), found = array_of(norm(x, {axis}, {.p = p}));
          double unit = dtype == f64 ? 0x1p-52 : dtype == f32 ? 0x1p-23 : dtype == f16 ? 0x1p-10 : 0x1p-7;
          for (std::int64_t i = 0; i < shape[1 - axis]; ++i) {
            std::vector<double> row;
            for (std::int64_t k = 0; k < shape[axis]; ++k)
              row.push_back(at(values, axis == 1 ? Index{i, k} : Index{k, i}));
            // The root rounds less than its sum, but a root of another degree may magnify that.
            double expected = norm_of(row, p),
                   bound = (dtype == f64 ? 32 : 1) * std::max(1.0, 1 / std::abs(p == 0 ? 1 : p));
            CHECK(std::abs(found.values[static_cast<std::size_t>(i)] / expected - 1) <= bound * unit);
          }
          Tensor transposed = transpose(copy(transpose(x))), stepped = select(stack({x, x * 0.0}, 2), 2, 0);
          for (const Tensor& view : {transposed, flip(copy(flip(x))), stepped})
            CHECK(std::abs(norm(view, {axis}, {.p = p})(0).item() / norm(x, {axis}, {.p = p})(0).item() - 1) <=
                  8 * unit);
        }
}

TEST_CASE("the norm of a slice is exact at any magnitude, and does not depend on its neighbours") {
  for (DType dtype : {f64, f32}) {
    const double huge = dtype == f64 ? 0x1p1000 : 0x1p120, tiny = dtype == f64 ? 0x1p-1000 : 0x1p-120;
    const double denormal = dtype == f64 ? 5e-324 : 0x1p-149;
    std::vector<double> factors{1, huge, tiny, 0, denormal, infinity, nan, -1};
    std::vector<Tensor> rows;
    for (double factor : factors) rows.push_back(full({64}, factor, {.dtype = dtype}));
    Tensor x = stack(rows), y = norm(x, {1}), columns = norm(transpose(x), {0});
    for (std::size_t i = 0; i < factors.size(); ++i) {
      CAPTURE(name_of(dtype), factors[i]);
      auto row = static_cast<std::int64_t>(i);
      Tensor alone = norm(x(row), {0});
      CHECK(same_bits(y(row), alone));
      CHECK(same_bits(columns(row), norm(unsqueeze(x(row), 1), {0})(0)));
      double expected = 8 * std::abs(factors[i]);
      if (std::isnan(expected))
        CHECK(std::isnan(alone.item()));
      else
        CHECK(alone.item() == expected);
    }
    Tensor mixed = tensor({huge, tiny, 3.0, 0.0});
    CHECK(norm(to(mixed, dtype)).item() == huge);
  }
}

}  // namespace reel_test
