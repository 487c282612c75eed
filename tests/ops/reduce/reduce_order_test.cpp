#include <reel/reel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "catch.h"
#include "ops/reduce/random_view.h"
#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr unsigned seed = 461;

struct Case {
  const char* name;
  std::function<Tensor(const Tensor&, const Shape&)> reduce;
  // The result of one group of elements, in f64.
  std::function<double(const std::vector<double>&)> expected;
  // The bound of the error, of the sum of magnitudes; 0: exact.
  double error = 0;
};

double total(const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0); }
double largest(const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); }

// The error of a sum in f32 of at most 30,000 terms: four levels of pairs, and what a compensated sum of their groups loses.
constexpr double sum_error = 6 * 0x1p-24;

const Case cases[] = {
    {"sum", [](const Tensor& x, const Shape& axes) { return sum(x, axes); }, total, sum_error},
    {"mean", [](const Tensor& x, const Shape& axes) { return mean(x, axes); },
     [](const std::vector<double>& v) { return total(v) / static_cast<double>(v.size()); }, sum_error},
    {"max", [](const Tensor& x, const Shape& axes) { return max(x, axes); }, largest},
    {"min", [](const Tensor& x, const Shape& axes) { return min(x, axes); },
     [](const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }},
    {"argmax", [](const Tensor& x, const Shape& axes) { return argmax(x, axes); },
     [](const std::vector<double>& v) {
       return static_cast<double>(std::max_element(v.begin(), v.end()) - v.begin());
     }},
    {"logsumexp", [](const Tensor& x, const Shape& axes) { return logsumexp(x, axes); },
     [](const std::vector<double>& v) {
       double shift = largest(v), sum = 0;
       for (double x : v) sum += std::exp(x - shift);
       return shift + std::log(sum);
     },
     8 * 0x1p-24},
    {"var", [](const Tensor& x, const Shape& axes) { return var(x, axes); },
     [](const std::vector<double>& v) {
       double mean = total(v) / static_cast<double>(v.size()), sum = 0;
       for (double x : v) sum += (x - mean) * (x - mean);
       return sum / static_cast<double>(v.size());
     },
     4 * 0x1p-24},
};

// The elements of x that belong to each result, in row-major order.
std::vector<std::vector<double>> groups_of(const Tensor& x, const Shape& axes) {
  std::vector<double> values = to(contiguous(x), f64).to_vector<double>();
  std::vector<std::int64_t> steps(x.rank(), 0);
  std::int64_t groups = 1;
  for (int axis = x.rank(); axis-- > 0;)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) {
      steps[axis] = groups;
      groups *= x.size(axis);
    }
  std::vector<std::vector<double>> result(groups);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), group = 0;
    for (int axis = x.rank(); axis-- > 0; rest /= x.size(axis)) group += rest % x.size(axis) * steps[axis];
    result[group].push_back(values[i]);
  }
  return result;
}

}  // namespace

TEST_CASE("reductions of views in any order of axes are those of their elements") {
  INFO("seed " << seed);
  std::mt19937 random(seed);
  manual_seed(seed);
  RandomView view(random);
  for (int i = 0; i < 150; ++i)
    for (const Case& test : cases)
      for (DType dtype : {f32, f64, i64, boolean}) {
        if (!is_floating(dtype) && test.error != 0 && test.name != std::string("sum")) continue;
        Tensor x = view(dtype);
        Shape axes = view.some_axes(x);
        if (test.name == std::string("argmax")) axes = Shape{axes[0]};
        CAPTURE(i, test.name, name_of(dtype), to_string(x.shape()), to_string(x.strides()), to_string(axes));
        std::vector<std::vector<double>> groups = groups_of(x, axes);
        std::vector<double> results = to(contiguous(test.reduce(x, axes)), f64).to_vector<double>();
        REQUIRE(results.size() == groups.size());
        bool good = true;
        for (std::size_t k = 0; k < groups.size(); ++k) {
          double magnitude = 0, expected = test.expected(groups[k]);
          for (double v : groups[k]) magnitude += std::abs(v);
          if (test.name == std::string("mean")) magnitude /= static_cast<double>(groups[k].size());
          magnitude = std::max({magnitude, std::abs(expected), 1.0});
          double error = dtype == f32 ? test.error : dtype == f64 ? test.error * 0x1p-29 : 0;
          good &= std::abs(results[k] - expected) <= error * magnitude;
        }
        CHECK(good);
      }
}

TEST_CASE("several long lines are reduced as each of them is alone") {
  manual_seed(seed);
  using Reduce = Tensor (*)(const Tensor&);
  for (std::int64_t length : {2047, 2048, 2049, 4095, 4096, 5000}) {
    Tensor x = randn({7, length}) * 0.1 + 1.0;
    for (Reduce reduce :
         {Reduce([](const Tensor& v) { return sum(v, -1); }), Reduce([](const Tensor& v) { return prod(v, -1); }),
          Reduce([](const Tensor& v) { return to(argmax(v, -1), f64); }),
          Reduce([](const Tensor& v) { return var(v, -1); }), Reduce([](const Tensor& v) { return norm(v, -1); }),
          Reduce([](const Tensor& v) { return norm(v, -1, {.p = 3}); }),
          Reduce([](const Tensor& v) { return logsumexp(v, -1); })}) {
      Tensor together = reduce(x);
      for (int i = 0; i < 7; ++i) {
        CAPTURE(length, i);
        CHECK(same_bits(together(i), reduce(x(i))));
      }
    }
  }
}

TEST_CASE("the bits of a sum depend on neither strides nor outer axes") {
  INFO("seed " << seed);
  std::mt19937 random(seed);
  manual_seed(seed);
  RandomView view(random);
  using Reduce = std::function<Tensor(const Tensor&, const Shape&)>;
  const Reduce reductions[] = {
      [](const Tensor& x, const Shape& axes) { return sum(x, axes); },
      [](const Tensor& x, const Shape& axes) { return logsumexp(x, axes); },
      [](const Tensor& x, const Shape& axes) { return var(x, axes); },
      [](const Tensor& x, const Shape& axes) { return norm(x, axes); },
      [](const Tensor& x, const Shape& axes) { return prod(x, axes); },
  };
  for (int i = 0; i < 300; ++i) {
    Tensor x = view(i % 3 == 0 ? f64 : f32);
    Shape axes = view.some_axes(x), outer = axes, order, back;
    CAPTURE(i, to_string(x.shape()), to_string(x.strides()), to_string(axes));
    for (std::int64_t& axis : outer) ++axis;
    // A copy without gaps in the order that x has in memory.
    for (int axis = 0; axis < x.rank(); ++axis) order.push_back(axis), back.push_back(0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return std::abs(x.strides()[a]) > std::abs(x.strides()[b]);
    });
    for (int k = 0; k < x.rank(); ++k) back[static_cast<int>(order[k])] = k;
    Tensor packed = permute(copy(permute(x, order)), back), plain = copy(x);
    bool is_repeated = false;
    for (std::int64_t stride : x.strides()) is_repeated |= stride == 0;
    for (const Reduce& reduce : reductions) {
      Tensor y = reduce(x, axes), alone = reduce(plain, axes);
      if (!is_repeated) CHECK(same_bits(contiguous(y), contiguous(reduce(packed, axes))));
      Tensor stacked = reduce(stack({plain, plain + 1.0, plain}, 0), outer);
      CHECK(same_bits(contiguous(stacked(0)), contiguous(alone)));
      CHECK(same_bits(contiguous(stacked(2)), contiguous(alone)));
    }
  }
}

TEST_CASE("products and places of the largest of lines of any length are those of the same lines with gaps") {
  std::mt19937_64 random(7);
  for (DType dtype : {f32, f64, bf16, i64})
    for (std::int64_t length : {1, 2, 15, 16, 17, 63, 64, 65, 100, 1000, 4095, 4096, 4097, 9000, 300'001}) {
      CAPTURE(name_of(dtype), length);
      std::int64_t rows = length > 1000 ? 2 : 5;
      std::vector<double> numbers(static_cast<std::size_t>(rows * length));
      for (double& x : numbers)
        x = static_cast<double>(static_cast<std::int64_t>(random() % 9) - 4) / 4 + (random() % 2 ? 1 : -1);
      if (dtype != i64) numbers[random() % numbers.size()] = NAN;
      Tensor x = to(reshape(tensor(numbers), {rows, length}), dtype), apart = select(stack({x, x}, -1), -1, 1);
      CHECK(same_bits(prod(x, {1}), prod(apart, {1})));
      std::vector<double> read = to(x, f64).to_vector<double>();
      for (bool largest : {false, true}) {
        Tensor found = largest ? argmax(x, 1) : argmin(x, 1);
        CHECK(same_bits(found, largest ? argmax(apart, 1) : argmin(apart, 1)));
        for (std::int64_t row = 0; row < rows; ++row) {
          const double* line = read.data() + row * length;
          std::int64_t best = 0;
          for (std::int64_t k = 1; k < length && !std::isnan(line[best]); ++k)
            if (std::isnan(line[k]) || (largest ? line[k] > line[best] : line[k] < line[best])) best = k;
          CHECK(found(row).item<std::int64_t>() == best);
        }
      }
    }
}

TEST_CASE("elementwise ops on operands in several orders of axes compute each element") {
  INFO("seed " << seed);
  std::mt19937 random(seed);
  manual_seed(seed);
  RandomView view(random);
  for (int i = 0; i < 300; ++i) {
    DType dtype = std::array{f32, f64, bf16, i64, u8}[i % 5];
    Tensor x = view(dtype);
    CAPTURE(i, name_of(dtype), to_string(x.shape()), to_string(x.strides()));
    Tensor other = to(randn(x.shape()) * 3.0, dtype), alike = copy(x);
    CHECK(same_bits(contiguous(x + other), copy(x) + other));
    CHECK(same_bits(contiguous(maximum(other, x)), maximum(other, copy(x))));
    CHECK(same_bits(contiguous(x > other), copy(x) > other));
    CHECK(same_bits(contiguous(square(x)), square(copy(x))));
    Shape reversed;
    for (int axis = x.rank(); axis-- > 0;) reversed.push_back(axis);
    Tensor target = permute(copy(permute(x, reversed)), reversed);
    add_(target, other);
    CHECK(same_bits(contiguous(target), alike + other));
  }
}

}  // namespace reel_test
