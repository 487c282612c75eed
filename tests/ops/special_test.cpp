#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "catch.h"
#include "ops/numbers.h"

namespace reel_test {

using namespace reel;

namespace {

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

}  // namespace

TEST_CASE("functions of special values give what the C library gives") {
  struct Function {
    std::string name;
    UnaryOp op;
    double (*formula)(double);
  };
  const Function functions[] = {
      {"neg", neg, [](double x) { return -x; }},
      {"exp", exp, [](double x) { return std::exp(x); }},
      {"log", log, [](double x) { return std::log(x); }},
      {"sqrt", sqrt, [](double x) { return std::sqrt(x); }},
      {"square", square, [](double x) { return x * x; }},
      {"tanh", tanh, [](double x) { return std::tanh(x); }},
      {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"relu", relu, [](double x) { return x < 0 ? 0.0 : x; }},
  };
  const std::vector<double> specials{nan, infinity, -infinity, 0.0, -0.0, 1, -1, 1000, -1000};
  // Leading and trailing ones put each value into a full register and into the remainder.
  for (const Function& function : functions)
    for (DType dtype : {f32, f64, bf16, f16})
      for (int ones_in_front : {0, 15}) {
        std::vector<double> x(static_cast<std::size_t>(ones_in_front), 1.0);
        x.insert(x.end(), specials.begin(), specials.end());
        std::vector<double> y = values_of(function.op(to(doubles(x), dtype)));
        for (std::size_t i = static_cast<std::size_t>(ones_in_front); i < x.size(); ++i) {
          CAPTURE(function.name, name_of(dtype), x[i], y[i]);
          double expected = function.formula(x[i]);
          if (expected == 0 || !std::isfinite(expected) || std::abs(x[i]) == 1000) {
            // 1000 squared is beyond f16, and e^±1000 beyond all.
            auto rounded = dtype == f16 ? static_cast<double>(static_cast<float>(Float16(static_cast<float>(expected))))
                                        : expected;
            if (std::abs(x[i]) != 1000 || rounded == 0 || !std::isfinite(rounded)) CHECK(same(y[i], rounded));
          }
        }
      }
}

TEST_CASE("functions at the ends of their range are neither cut off nor overflow early") {
  auto near = [](const Tensor& y, double expected, double ulps) {
    double found = values_of(y)[0];
    CAPTURE(found, expected);
    CHECK(std::abs(found - expected) <= ulps * last_place(y.dtype()) * expected);
  };
  near(exp(tensor({88.7f})), std::exp(static_cast<double>(88.7f)), 2);
  near(exp(tensor({-87.0f})), std::exp(-87.0), 2);
  near(exp(tensor({709.7})), std::exp(709.7), 2);
  near(exp(tensor({-708.0})), std::exp(-708.0), 2);
  CHECK(exp(tensor({88.8f})).item() == infinity);
  CHECK(exp(tensor({709.8})).item() == infinity);
  CHECK(exp(tensor({-110.0f})).item() == 0);
  CHECK(exp(tensor({-800.0})).item() == 0);
  CHECK(tanh(tensor({30.0, -30.0})).to_vector<double>() == std::vector<double>{1, -1});
  CHECK(sigmoid(tensor({100.0f})).item() == 1);
  CHECK(log(tensor({std::numeric_limits<float>::max()})).item() == Approx(88.72283905206835));
}

TEST_CASE("denormal numbers keep their values") {
  for (DType dtype : {f32, f64}) {
    CAPTURE(name_of(dtype));
    double tiny = dtype == f32 ? 0x1p-140 : 0x1p-1060;
    Tensor x = to(doubles({tiny, -tiny}), dtype), positive = slice(x, 0, 0, 1);
    CHECK(values_of(-x) == std::vector<double>{-tiny, tiny});
    CHECK(values_of(relu(x)) == std::vector<double>{tiny, 0});
    CHECK(values_of(square(x)) == std::vector<double>{0, 0});
    CHECK(values_of(exp(x)) == std::vector<double>{1, 1});
    CHECK(values_of(sigmoid(x)) == std::vector<double>{0.5, 0.5});
    CHECK(sqrt(positive).item() == std::sqrt(tiny));
    CHECK(log(positive).item() == Approx(std::log(tiny)).epsilon(4 * last_place(dtype)));
    CHECK(tanh(positive).item() == tiny);
    CHECK(values_of(x + x) == std::vector<double>{2 * tiny, -2 * tiny});
    CHECK(sum(x, {.keepdims = true}).item() == 0);
  }
}

TEST_CASE("comparisons with NaN are false but for not_equal") {
  Tensor x = doubles({nan, nan, 1}), y = doubles({nan, 1, nan});
  for (const Tensor& result : {x == y, x<y, x <= y, x> y, x >= y})
    CHECK(values_of(result) == std::vector<double>{0, 0, 0});
  CHECK(values_of(x != y) == std::vector<double>{1, 1, 1});
}

TEST_CASE("the largest element is NaN if one is") {
  for (DType dtype : {f32, f64, bf16, f16})
    for (std::int64_t place : {0, 1, 17, 99}) {
      CAPTURE(name_of(dtype), place);
      Tensor x = zeros({100}, {.dtype = f64});
      x.write<double>()[place] = nan;
      Tensor y = to(x, dtype);
      CHECK(std::isnan(max(y).item()));
      CHECK(std::isnan(max(reshape(y, {10, 10})).item()));
      std::vector<double> columns = values_of(max(reshape(y, {10, 10}), {0}));
      for (int i = 0; i < 10; ++i) CHECK(std::isnan(columns[static_cast<std::size_t>(i)]) == (i == place % 10));
    }
  CHECK(max(doubles({-infinity, -infinity})).item() == -infinity);
}

TEST_CASE("equal largest elements share the gradient") {
  Tensor x = doubles({3, 1, 3, 3});
  Tape tape;
  tape.watch(x);
  CHECK(values_of(tape.gradient(max(x), x)) == std::vector<double>{1.0 / 3, 0, 1.0 / 3, 1.0 / 3});
}

TEST_CASE("sums of a million f32 numbers are as exact as blocks allow") {
  constexpr std::uint64_t seed = 8;
  CAPTURE(seed);
  manual_seed(seed);
  constexpr std::int64_t count = 1'000'000;
  for (const Tensor& x : {rand({count}), randn({count}), full({count}, 0.1)}) {
    double exact = 0, sizes = 0;
    for (float value : x.to_vector<float>()) {
      exact += static_cast<double>(value);
      sizes += std::abs(static_cast<double>(value));
    }
    // Sixteen running sums over a block of 2048, joined in pairs, and the 489 blocks in pairs: 128 + 4 + 9
    // additions on any element's way, half a unit each.
    double bound = (128 + 4 + 9) * 0.5 * last_place(f32) * sizes;
    CHECK(std::abs(sum(x).item() - exact) <= bound);
    CHECK(std::abs(mean(x).item() - exact / count) <= (bound + last_place(f32) * std::abs(exact)) / count);
    // In columns: 64 rows to a part, the parts one after the other.
    Tensor columns = sum(reshape(x, {1000, 1000}), {0});
    CHECK(std::abs(values_of(sum(to(columns, f64)))[0] - exact) <= (64 + 16) * 0.5 * last_place(f32) * sizes);
    CHECK(std::abs(sum(transpose(reshape(x, {1000, 1000}))).item() - exact) <= 4 * bound);
  }
}

TEST_CASE("halves are summed, averaged and scattered in f32 and rounded once") {
  for (DType dtype : {bf16, f16}) {
    CAPTURE(name_of(dtype));
    CHECK(sum(ones({3000}, {.dtype = dtype})).item() == to(doubles({3000}), dtype).item());
    // The sum, 200000, is beyond f16; the mean is not.
    CHECK(mean(full({2000}, 100, {.dtype = dtype})).item() == 100);
    CHECK(cross_entropy(zeros({20000, 50}, {.dtype = dtype}), zeros({20000}, {.dtype = i64})).item() ==
          to(doubles({std::log(50)}), dtype).item());
    Tensor index = zeros({3000}, {.dtype = i64});
    Tensor updates = ones({3000}, {.dtype = dtype});
    CHECK(scatter_add(zeros({1}, {.dtype = dtype}), 0, index, updates).item() == to(doubles({3000}), dtype).item());
    Tensor weights = zeros({1, 1}, {.dtype = dtype});
    Tape tape;
    tape.watch(weights);
    Tensor rows = embedding(weights, index);
    Tensor gradient = tape.gradient(rows, weights, {.seed = ones({3000, 1}, {.dtype = dtype})});
    CHECK(gradient.item() == to(doubles({3000}), dtype).item());
  }
}

TEST_CASE("integers wrap around") {
  constexpr int least = std::numeric_limits<int>::min(), most = std::numeric_limits<int>::max();
  Tensor x = tensor({most, least});
  CHECK((x + 1).to_vector<int>() == std::vector<int>{least, least + 1});
  CHECK((x - 1).to_vector<int>() == std::vector<int>{most - 1, most});
  CHECK((x * 2).to_vector<int>() == std::vector<int>{-2, 0});
  CHECK((-x).to_vector<int>() == std::vector<int>{-most, least});
  CHECK(square(tensor({65536, 46341})).to_vector<int>() == std::vector<int>{0, -2147479015});
  CHECK(pow(tensor({3}), 40).item<int>() == 689956897);  // 3^40 modulo 2^32
  Tensor bytes = to(tensor({200, 100, 0}), u8);
  CHECK(values_of(bytes + bytes) == std::vector<double>{144, 200, 0});
  CHECK(values_of(bytes - 150) == std::vector<double>{50, 206, 106});
  CHECK(values_of(-bytes) == std::vector<double>{56, 156, 0});
  for (DType dtype : {i8, i16}) {
    CAPTURE(name_of(dtype));
    double low = dtype == i8 ? -128 : -32768, high = -low - 1;
    Tensor ends = to(tensor({low, high, high}), dtype), others = to(tensor({-1.0, high, 1.0}), dtype);
    CHECK(values_of(ends + others) == std::vector<double>{high, -2, low});
    CHECK(values_of(ends * others) == std::vector<double>{low, 1, high});
    CHECK(values_of(-ends) == std::vector<double>{low, -high, -high});
    CHECK(values_of(abs(ends)) == std::vector<double>{low, high, high});
    CHECK(values_of(square(ends)) == std::vector<double>{0, 1, 1});
    CHECK(values_of(floor_divide(ends, others)) == std::vector<double>{low, 1, high});
    CHECK(values_of(ends % others) == std::vector<double>{0, 0, 0});
    CHECK(values_of(bitwise_not(ends)) == std::vector<double>{high, low, low});
    CHECK(values_of(bitwise_left_shift(ends, 1)) == std::vector<double>{0, -2, -2});
    CHECK(values_of(bitwise_right_shift(ends, 100)) == std::vector<double>{-1, 0, 0});
    CHECK(sum(ends).item<std::int64_t>() == static_cast<std::int64_t>(high - 1));
    CHECK(values_of(sort(ends, 0, {.descending = true}).values) == std::vector<double>{high, high, low});
    CHECK(matmul(ends, others).dtype() == dtype);
    CHECK(values_of(clamp(ends, -INFINITY, 5)) == std::vector<double>{low, 5, 5});
    CHECK(to_string(slice(ends, 0, 0, 1)) == (dtype == i8 ? "[-128]" : "[-32768]"));
  }
  Tensor longs = tensor({std::numeric_limits<std::int64_t>::max()});
  CHECK((longs + 1).item<std::int64_t>() == std::numeric_limits<std::int64_t>::min());
  CHECK(sum(concat({longs, longs})).item<std::int64_t>() == -2);
  CHECK(matmul(tensor({most}), tensor({2})).item<int>() == -2);
}

TEST_CASE("pow has the C library's corner cases") {
  const std::vector<double> bases{0, 0, 0, -0.0, -2, -2, -2, 1, nan, infinity, -8, 0};
  const std::vector<double> powers{0, 2, -1, -1, 2, 3, 0.5, nan, 0, -1, 1.0 / 3, 0.5};
  for (DType dtype : {f32, f64}) {
    std::vector<double> found = values_of(pow(to(doubles(bases), dtype), to(doubles(powers), dtype)));
    for (std::size_t i = 0; i < bases.size(); ++i) {
      CAPTURE(bases[i], powers[i], found[i]);
      CHECK(same(found[i], std::pow(bases[i], powers[i])));
    }
  }
  CHECK(pow(tensor({2, -2, 1, -1, -1, 0}), tensor({-1, -1, -5, -5, -4, 0})).to_vector<int>() ==
        std::vector<int>{0, 0, 1, -1, 1, 1});
}

TEST_CASE("the gradient of pow is finite wherever the derivative is") {
  struct Row {
    double base, power, by_base, by_power;
  };
  const Row rows[] = {{0, 0, 0, 0},           {0, 1, 1, 0},     {0, 2, 0, 0},    {0, 3, 0, 0},
                      {2, 0, 0, std::log(2)}, {-2, 2, -4, nan}, {-1, 3, 3, nan}, {4, 0.5, 0.25, 2 * std::log(4)},
                      {0, 0.5, infinity, 0}};
  for (const Row& row : rows) {
    CAPTURE(row.base, row.power);
    Tensor a = doubles({row.base}), b = doubles({row.power});
    Tape tape;
    tape.watch(a);
    tape.watch(b);
    auto [da, db] = tape.gradient(pow(a, b), a, b);
    CHECK((std::isinf(row.by_base) ? da.item() == row.by_base : da.item() == Approx(row.by_base)));
    CHECK((std::isnan(row.by_power) ? std::isnan(db.item()) : db.item() == Approx(row.by_power)));
  }
}

TEST_CASE("the derivative of x^0 is 0 however small x is") {
  Tensor x = to(tensor({1e-5f, 1.f}), f16), y = tensor({1e-40f, 0.f});
  Tape tape({.persistent = true});
  tape.watch(x);
  tape.watch(y);
  CHECK(sum(tape.gradient(sum(pow(x, 0)), x)).item() == 0);
  CHECK(tape.gradient(sum(pow(y, 0)), y).to_vector<float>() == std::vector<float>{0, 0});
}

TEST_CASE("a long sum over rows is as exact as one over columns") {
  // Pairwise: the error grows with log₂ of the 64-row parts, 14 here, and 64 within a part.
  Tensor x = full({1 << 20, 8}, 0.1f);
  double exact = (1 << 20) * static_cast<double>(0.1f);
  CHECK(std::abs(sum(x, {0}).to_vector<float>()[0] - exact) <= (64 + 14) * 6e-8 * exact);
}

TEST_CASE("derivatives at kinks are the documented ones") {
  Tensor x = doubles({0, -0.0, 1e-300, -1e-300, NAN});
  Tape tape({.persistent = true});
  tape.watch(x);
  CHECK(values_of(tape.gradient(sum(relu(x)), x)) == std::vector<double>{0, 0, 1, 0, 1});
  CHECK(values_of(tape.gradient(sum(sqrt(square(x) + 1)), x))[0] == 0);
}

TEST_CASE("softmax of extreme rows") {
  Tensor x = tensor({{1e30, 0.0, -1e30}, {-infinity, 0.0, 0.0}, {1000.0, 1000.0, 1000.0}});
  std::vector<double> y = values_of(softmax(x));
  CHECK(std::vector<double>(y.begin(), y.begin() + 6) == std::vector<double>{1, 0, 0, 0, 0.5, 0.5});
  CHECK(y[7] == Approx(1.0 / 3));
  std::vector<double> l = values_of(log_softmax(x));
  CHECK(l[0] == 0);
  CHECK(l[2] == -2e30);
  CHECK(l[3] == -infinity);
  CHECK(l[4] == Approx(-std::log(2)));
  CHECK(std::isnan(values_of(softmax(doubles({nan, 1})))[1]));
  // A masked element has no gradient either.
  for (decltype(&softmax) op : {softmax, log_softmax}) {
    Tensor row = doubles({-infinity, 1, 2});
    Tape tape;
    tape.watch(row);
    std::vector<double> gradient = values_of(tape.gradient(select(op(row, -1, {}), 0, 1), row));
    CHECK(gradient[0] == 0);
    CHECK(std::isfinite(gradient[1]));
  }
}

TEST_CASE("softmax of a long row is hardly less accurate than that of a short one") {
  manual_seed(23);
  Tensor x = rand({4, 10007}) * 4 - 2;
  std::vector<double> exact = values_of(softmax(to(x, f64))), logarithms = values_of(log_softmax(to(x, f64)));
  std::vector<double> y = values_of(softmax(x)), l = values_of(log_softmax(x));
  double worst = 0, worst_logarithm = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    worst = std::max(worst, std::abs(y[i] / exact[i] - 1));
    worst_logarithm = std::max(worst_logarithm, std::abs(l[i] - logarithms[i]));
  }
  // In units: 1 for x - max of up to 4 and 1 for its exponential, 2 for what these are in the sum, half of one for the sum's
  // inverse and for the product, and 2 for the sum's own rounding. One sum of all terms in order gathers some 30.
  CHECK(worst <= 7 * 0x1p-23);
  // 1 for x - max, 4 for a logarithm and for a result between 8 and 16, and the relative error of the sum.
  CHECK(worst_logarithm <= (1 + 4 + 4 + 4) * 0x1p-23);
}

TEST_CASE("i32 indices give what i64 indices give") {
  Tensor x = reshape(arange(12, {.dtype = f64}), {4, 3}) * 0.5, index = tensor({{0l, 3l, -1l}, {2l, 2l, 0l}});
  using Indexed = Tensor (*)(const Tensor& x, const Tensor& index);
  const Indexed functions[] = {
      [](const Tensor& from, const Tensor& at) { return gather(from, 0, at); },
      [](const Tensor& from, const Tensor& at) { return scatter_add(from, 0, at, slice(from, 0, 0, 2)); },
      [](const Tensor& from, const Tensor& at) { return embedding(from, at); },
      [](const Tensor& from, const Tensor& at) { return embedding(from, transpose(at)); },
      [](const Tensor& from, const Tensor& at) { return cross_entropy(transpose(from), relu(select(at, 0, 0))); },
  };
  for (Indexed function : functions) {
    Tape tape({.persistent = true});
    tape.watch(x);
    Tensor narrow = function(x, to(index, i32)), wide = function(x, index);
    CHECK(same_bits(narrow, wide));
    CHECK(same_bits(tape.gradient(sum(square(narrow)), x), tape.gradient(sum(square(wide)), x)));
  }
}

TEST_CASE("reductions of nothing") {
  CHECK(sum(zeros({0})).item() == 0);
  CHECK(std::isnan(mean(zeros({0})).item()));
  CHECK(sum(zeros({0, 3}), {0}).to_vector<float>() == std::vector<float>{0, 0, 0});
  CHECK(max(zeros({0, 3}), {1}).shape() == Shape{0});
  CHECK(values_of(matmul(zeros({2, 0}), zeros({0, 2}))) == std::vector<double>{0, 0, 0, 0});
  CHECK(std::isnan(cross_entropy(zeros({2, 3}), full({2}, -100, {.dtype = i64})).item()));
  CHECK(embedding(zeros({3, 2}), zeros({0}, {.dtype = i64})).shape() == Shape{0, 2});
  CHECK(gather(zeros({3}), 0, zeros({0}, {.dtype = i64})).numel() == 0);
}

TEST_CASE("an ignored class number of any size is no trouble for i32 targets") {
  Tensor targets = tensor({1, 0}), logits = doubles({1, 2, 3, 4});
  CrossEntropyOptions options{.ignore_index = std::int64_t{1} << 40};
  CHECK(cross_entropy(reshape(logits, {2, 2}), targets, options).item() ==
        cross_entropy(reshape(logits, {2, 2}), targets).item());
}

TEST_CASE("views and copies are what their contracts say") {
  Tensor x = reshape(arange(24, {.dtype = f32}), {2, 3, 4});
  const void* first = x.data<float>();
  CHECK(reshape(x, {6, 4}).data<float>() == first);
  CHECK(reshape(slice(x, 0, 0, 1), {3, 4}).data<float>() == first);
  CHECK(reshape(transpose(x), {24}).data<float>() != first);
  CHECK(transpose(x).strided_data<float>() == first);
  CHECK(expand(x, {5, 2, 3, 4}).strided_data<float>() == first);
  CHECK(slice(x, 2, 1).strided_data<float>() == x.data<float>() + 1);
  CHECK(select(x, 0, 1).data<float>() == x.data<float>() + 12);
  CHECK(squeeze(unsqueeze(transpose(x), 1), 1).strided_data<float>() == first);
  CHECK(split(x, 2, 1)[1].strided_data<float>() == x.data<float>() + 8);
  CHECK(copy(x).data<float>() != first);
  CHECK(contiguous(x).data<float>() == first);
  CHECK(to(x, f32).data<float>() != first);
}

}  // namespace reel_test
