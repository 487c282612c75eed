#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "catch.h"
#include "ops/table/table.h"

// Rows of any length beside an operand that is one element along each of them, and rows of halves: both have loops of their own,
// whose last elements do not fill a vector.

namespace reel_test {

using namespace reel;

namespace {

constexpr std::uint64_t seed = 83;
constexpr std::int64_t lengths[] = {1, 7, 31, 32, 33, 40, 63, 64, 65, 100, 517, 5000};

struct Binary {
  const char* name;
  Tensor (*op)(const Tensor& a, const Tensor& b);
  double (*formula)(double a, double b);
};
const Binary binary_ops[] = {
    {"add", [](const Tensor& a, const Tensor& b) { return a + b; }, [](double a, double b) { return a + b; }},
    {"sub", [](const Tensor& a, const Tensor& b) { return a - b; }, [](double a, double b) { return a - b; }},
    {"mul", [](const Tensor& a, const Tensor& b) { return a * b; }, [](double a, double b) { return a * b; }},
    {"div", [](const Tensor& a, const Tensor& b) { return a / b; }, [](double a, double b) { return a / b; }},
    {"maximum", [](const Tensor& a, const Tensor& b) { return maximum(a, b); },
     [](double a, double b) { return std::max(a, b); }},
    {"minimum", [](const Tensor& a, const Tensor& b) { return minimum(a, b); },
     [](double a, double b) { return std::min(a, b); }},
};

// Basic operations of f32 are those of f64, rounded: f64 has more than twice as many digits.
double rounded_to(DType dtype, double x) { return dtype == f32 ? static_cast<double>(static_cast<float>(x)) : x; }

}  // namespace

TEST_CASE("a column beside rows of any length gives each element's own result, on either side") {
  Generator generator(seed);
  INFO("seed " << seed);
  for (DType dtype : {f32, f64})
    for (std::int64_t length : lengths) {
      Tensor m = randn({3, length}, {.dtype = dtype, .generator = &generator});
      Tensor column = randn({3, 1}, {.dtype = dtype, .generator = &generator});
      std::vector<double> elements = array_of(m).values, numbers = array_of(column).values;
      for (const Binary& one : binary_ops)
        for (bool first : {false, true}) {
          CAPTURE(one.name, length, first);
          Tensor result = first ? one.op(column, m) : one.op(m, column);
          std::vector<double> expected = elements;
          for (std::size_t i = 0; i < expected.size(); ++i) {
            double number = numbers[i / static_cast<std::size_t>(length)];
            expected[i] =
                rounded_to(dtype, first ? one.formula(number, expected[i]) : one.formula(expected[i], number));
          }
          CHECK(array_of(result).values == expected);
        }
    }
}

TEST_CASE("a column is subtracted from rows in place, also if it is their own first column") {
  for (std::int64_t length : lengths)
    for (bool own : {false, true}) {
      CAPTURE(length, own);
      Tensor m = reshape(arange(3 * length, {.dtype = f64}), {3, length});
      Tensor column = slice(m, 1, 0, 1);
      m -= own ? column : copy(column);
      CHECK(same_bits(m, copy(expand(arange(length, {.dtype = f64}), {3, length}))));
    }
}

TEST_CASE("the gradient of softmax of halves is that of their values, rounded once") {
  Generator generator(seed);
  INFO("seed " << seed);
  for (DType dtype : {bf16, f16})
    for (bool strided : {false, true})
      for (std::int64_t length : lengths) {
        CAPTURE(name_of(dtype), strided, length);
        auto drawn = [&] {
          Tensor x = to(randn({2, length}, {.dtype = f32, .generator = &generator}), dtype);
          return strided ? transpose(copy(transpose(x))) : x;
        };
        Tensor x = drawn().requires_grad(), seed_of_y = drawn();
        Tape tape;
        Tensor y = softmax(x);
        std::vector<double> found = array_of(tape.gradient(y, x, {.seed = seed_of_y})).values;
        std::vector<double> result = array_of(y).values, given = array_of(seed_of_y).values;
        auto n = static_cast<std::size_t>(length);
        for (std::size_t row = 0; row < 2; ++row) {
          double inner = 0, size = 0;
          for (std::size_t i = row * n; i < (row + 1) * n; ++i) {
            inner += given[i] * result[i];
            size += std::abs(given[i] * result[i]);
          }
          for (std::size_t i = row * n; i < (row + 1) * n; ++i) {
            double expected = result[i] * (given[i] - inner);
            // Half a unit in the last place of the half, the least subnormal number of f16, and the rounding of an f32 sum
            // of at most 5,000 terms in four lanes or more: 1,250 roundings of 2⁻²⁴ in a lane, and a few to join them.
            double bound = std::abs(expected) * (dtype == bf16 ? 0x1p-8 : 0x1p-11) + (dtype == f16 ? 0x1p-25 : 0) +
                           1260 * 0x1p-24 * result[i] * (std::abs(given[i]) + size);
            CHECK(std::abs(found[i] - expected) <= bound);
          }
        }
      }
}

}  // namespace reel_test
