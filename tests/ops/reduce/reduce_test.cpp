#include <reel/reel.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/threads/parallel.h"
#include "ops/bad_input.h"
#include "ops/numbers.h"
#include "ops/reduce/gradient_of.h"

namespace reel_test {

using namespace reel;

namespace {

const std::vector<DType> integer_dtypes{i32, i64, u8, boolean, i8, i16};

}  // namespace

TEST_CASE("integers and bools are summed and multiplied in i64") {
  for (DType dtype : integer_dtypes) {
    CAPTURE(name_of(dtype));
    Tensor x = ones({300}, {.dtype = dtype});
    for (const Tensor& y : {sum(x), prod(x), count_nonzero(x)}) CHECK(y.dtype() == i64);
    CHECK(sum(x).item() == 300);
    CHECK(cumsum(x).dtype() == i64);
    CHECK(values_of(cumsum(x))[299] == 300);
    CHECK(cumprod(x).dtype() == i64);
    CHECK(max(x).dtype() == dtype);
    CHECK(min(x).dtype() == dtype);
    CHECK(median(x).dtype() == f32);
    CHECK(argmax(x).dtype() == i64);
    CHECK(any(x).dtype() == boolean);
    CHECK(all(x).dtype() == boolean);
  }
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(prod(tensor({most, std::int64_t{2}})).item<std::int64_t>() == -2);
  CHECK(prod(full({64}, 2, {.dtype = i32})).item<std::int64_t>() == 0);
  CHECK(prod(full({62}, 2, {.dtype = i32})).item<std::int64_t>() == std::int64_t{1} << 62);
  CHECK(cumsum(tensor({most, std::int64_t{1}})).to_vector<std::int64_t>()[1] ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(min(tensor({std::numeric_limits<std::int64_t>::min(), most})).item<std::int64_t>() ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(max(tensor({most - 1, most})).item<std::int64_t>() == most);
}

TEST_CASE("largest and smallest elements and their places see the first NaN") {
  for (DType dtype : {f32, f64, bf16, f16})
    for (std::int64_t place : {0, 1, 17, 99}) {
      CAPTURE(name_of(dtype), place);
      Tensor x = arange(100, {.dtype = f64});
      {
        auto values = x.write<double>();
        values[place] = nan;
        values[99] = nan;
      }
      Tensor y = to(x, dtype), square_of = reshape(y, {10, 10});
      CHECK(std::isnan(min(y).item()));
      CHECK(std::isnan(max(y).item()));
      CHECK(std::isnan(median(y).item()));
      CHECK(argmax(y).item() == static_cast<double>(place));
      CHECK(argmin(y).item() == static_cast<double>(place));
      CHECK(argmin(square_of).item() == static_cast<double>(place));
      std::int64_t row = place / 10, column = place % 10;
      CHECK(values_of(argmax(square_of, 0))[static_cast<std::size_t>(column)] == static_cast<double>(row));
      CHECK(values_of(argmin(square_of, 1))[static_cast<std::size_t>(row)] == static_cast<double>(column));
    }
}

TEST_CASE("of equal elements the first is the largest and the smallest") {
  for (DType dtype : all_dtypes)
    for (const Shape& shape : {Shape{1000}, Shape{10, 100}, Shape{250, 4}, Shape{5, 200}}) {
      CAPTURE(name_of(dtype), to_string(shape));
      Tensor x = ones(shape, {.dtype = dtype});
      CHECK(argmax(x).item() == 0);
      CHECK(argmin(x).item() == 0);
      for (int axis = 0; axis < x.rank(); ++axis) {
        CHECK(sum(argmax(x, axis)).item() == 0);
        CHECK(sum(argmin(x, axis)).item() == 0);
      }
    }
  CHECK(argmax(doubles({-infinity, -infinity})).item() == 0);
  CHECK(argmin(doubles({infinity, infinity})).item() == 0);
  CHECK(argmax(doubles({0, -0.0, 0})).item() == 0);
  CHECK(argmax(doubles({-0.0, 0})).item() == 0);
  CHECK(argmax(doubles({1, 3, 2, 3}), {.keepdims = true}).shape() == Shape{1});
  CHECK(argmax(zeros({2, 3, 4}), -2, {.keepdims = true}).shape() == Shape{2, 1, 4});
  CHECK(argmax(full({}, 7)).item() == 0);
}

TEST_CASE("equal smallest elements share the gradient") {
  CHECK(gradient_of(doubles({1, 3, 1}), [](const Tensor& x) { return min(x); }) == Values{0.5, 0, 0.5});
}

TEST_CASE("truth is being other than 0") {
  for (DType dtype : {f32, f64, bf16, f16}) {
    Tensor x = to(tensor({{0.0, -0.0, 0.0}, {0.0, nan, 1e-7}, {infinity, 1.0, -2.0}}), dtype);
    CAPTURE(name_of(dtype));
    CHECK(values_of(any(x, {1})) == Values{0, 1, 1});
    CHECK(values_of(all(x, {1})) == Values{0, 0, 1});
    CHECK(values_of(count_nonzero(x, {1})) == Values{0, 2, 3});
    CHECK(count_nonzero(x, {.keepdims = true}).shape() == Shape{1, 1});
  }
  CHECK(any(tensor({0, 0, -1})).item<bool>());
  CHECK(!all(tensor({1, 0, -1})).item<bool>());
}

TEST_CASE("a variance does not cancel beside a large mean") {
  constexpr std::uint64_t seed = 3;
  CAPTURE(seed);
  manual_seed(seed);
  for (const Shape& shape : {Shape{10000, 1}, Shape{2500, 4}, Shape{100, 100}}) {
    Tensor x = randn(shape) + 1e4, wide = to(x, f64);
    Tensor centred = wide - mean(wide, {0});
    Tensor exact = mean(centred * centred, {0});
    Values found = values_of(var(x, {0})), expected = values_of(exact), roots = values_of(reel::std(x, {0}));
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(std::abs(found[i] - expected[i]) <= 0.51 * last_place(f32) * expected[i]);
      CHECK(std::abs(roots[i] - std::sqrt(expected[i])) <= 0.51 * last_place(f32) * std::sqrt(expected[i]));
    }
    // The gradient is 2 (x − mean) / n; x itself is rounded to 1e-3.
    Tape tape;
    tape.watch(x);
    Values gradient = values_of(tape.gradient(sum(var(x, {0})), x)), deviations = values_of(centred);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      double n = static_cast<double>(shape[0]);
      CHECK(std::abs(gradient[i] - 2 * deviations[i] / n) <= 1e-5 / n);
    }
  }
  CHECK(var(full({1000}, 0.1)).item() == 0);
  CHECK(var(full({1000}, 60000, {.dtype = f16})).item() == 0);
  CHECK(std::isinf(var(tensor({-6e4f, 6e4f}) * 1e30).item()));
  CHECK(reel::std(to(tensor({-300.0, 300.0}), f16)).item() == 300);  // the variance is beyond f16
}

TEST_CASE("the correction of a variance is taken from the count") {
  Tensor x = doubles({1, 2, 3, 6});
  CHECK(var(x).item() == 3.5);
  CHECK(var(x, {.correction = 1}).item() == Approx(14.0 / 3));
  CHECK(reel::std(x, {0}, {.correction = 2, .keepdims = true}).shape() == Shape{1});
  CHECK(reel::std(x, {.correction = 2}).item() == Approx(std::sqrt(7)));
  CHECK(var(x, {.correction = 4}).item() == infinity);
  CHECK(var(x, {.correction = 5}).item() == infinity);
  CHECK(std::isnan(var(full({1}, 2.0), {.correction = 1}).item()));
  CHECK(var(full({1}, 2.0)).item() == 0);
  CHECK(std::isnan(var(doubles({1, nan})).item()));
  CHECK(std::isnan(var(doubles({1, infinity})).item()));
}

TEST_CASE("the standard deviation of equal elements has gradient 0") {
  CHECK(gradient_of(doubles({2, 2, 2}), [](const Tensor& x) { return reel::std(x); }) == Values{0, 0, 0});
  CHECK(gradient_of(doubles({2}), [](const Tensor& x) { return reel::std(x); }) == Values{0});
}

TEST_CASE("a product has the right derivatives with any number of zeros") {
  for (const Values& factors : {Values{2, 0, 3, 5}, Values{0, 2, 0, 3}, Values{0, 0, 0, 2}, Values{0}, Values{0, 0}}) {
    Tensor x = doubles(factors);
    CAPTURE(to_string(x));
    std::size_t n = factors.size();
    auto others = [&](std::size_t i, std::size_t j) {
      double result = 1;
      for (std::size_t k = 0; k < n; ++k)
        if (k != i && k != j) result *= factors[k];
      return result;
    };
    Tape outer({.persistent = true});
    outer.watch(x);
    Tensor first, last_of_running;
    {
      Tape inner({.persistent = true});
      inner.watch(x);
      first = inner.gradient(prod(x), x);
      last_of_running = inner.gradient(select(cumprod(x), 0, -1), x);
    }
    for (std::size_t i = 0; i < n; ++i) {
      CHECK(values_of(first)[i] == others(i, i));
      CHECK(values_of(last_of_running)[i] == others(i, i));
      if (n == 1) continue;
      for (const Tensor& row : {first, last_of_running}) {
        Values second = values_of(outer.gradient(select(row, 0, static_cast<std::int64_t>(i)), x));
        for (std::size_t j = 0; j < n; ++j) CHECK(second[j] == (i == j ? 0 : others(i, j)));
      }
    }
  }
}

TEST_CASE("derivatives of products and running products with zeros agree with differences") {
  Tensor x = tensor({{1.5, 0.0, -0.7, 2.0}, {0.0, 0.3, 0.0, -1.2}, {0.9, 1.1, 0.4, 0.0}});
  const Function functions[] = {
      [](std::span<const Tensor> a) { return prod(a[0]); },
      [](std::span<const Tensor> a) { return prod(a[0], {0}); },
      [](std::span<const Tensor> a) { return prod(a[0], {1}, {.keepdims = true}); },
      [](std::span<const Tensor> a) { return cumprod(a[0], 0); },
      [](std::span<const Tensor> a) { return cumprod(a[0], 1); },
      [](std::span<const Tensor> a) { return cumprod(a[0]); },
  };
  for (const Function& function : functions) {
    debug::GradcheckReport once = debug::gradcheck(function, {x}), twice = debug::gradgradcheck(function, {x});
    INFO(once.text << twice.text);
    CHECK(once.agrees);
    CHECK(twice.agrees);
  }
}

TEST_CASE("an f32 product neither overflows nor vanishes on the way") {
  Tensor x = tensor({1e30f, 1e30f, 1e-30f, 1e-30f});
  CHECK(prod(x).item() == Approx(1));
  CHECK(values_of(cumprod(x))[3] == Approx(1));
  CHECK(values_of(cumprod(x))[1] == infinity);
  Values d = gradient_of(x, [](const Tensor& a) { return prod(a); });
  for (std::size_t i = 0; i < 4; ++i) CHECK(d[i] == Approx(i < 2 ? 1e-30 : 1e30));
}

TEST_CASE("a product that is close to the bounds of f64 has the right derivatives") {
  for (const Values& factors : {Values{1e-160, 1e-150, 3}, Values{1e160, 1e145, 2}, Values{1e200, 1e200, 1e-200},
                                Values{0.5, -3, 7}, Values{-infinity, 2, 3}}) {
    CAPTURE(factors[0]);
    Values d = gradient_of(doubles(factors), [](const Tensor& a) { return prod(a); });
    for (std::size_t i = 0; i < 3; ++i) CHECK(d[i] == Approx(factors[(i + 1) % 3] * factors[(i + 2) % 3]));
  }
}

TEST_CASE("logsumexp of integers and bools is that of f32") {
  CHECK(logsumexp(tensor({3, 3})).dtype() == f32);
  CHECK(logsumexp(tensor({3, 3})).item() == Approx(3 + std::log(2)));
  CHECK(logsumexp(tensor({{true, false}}), 1).item() == Approx(std::log(1 + std::exp(1.0))));
}

TEST_CASE("logaddexp and logcumsumexp agree with logsumexp at infinities, in values and gradients of both orders") {
  const double ends[] = {-infinity, infinity, 0, 1, 1000};
  struct Case {
    std::string name;
    std::int64_t summed;
    std::function<Tensor(const Tensor&)> f;
  };
  std::vector<Case> cases{{"logaddexp", 2, [](const Tensor& x) { return logaddexp(x(0), x(1)); }},
                          {"logcumsumexp", 3, [](const Tensor& x) { return logcumsumexp(x, 0)(2); }},
                          {"the beginning of logcumsumexp", 2, [](const Tensor& x) { return logcumsumexp(x, 0)(1); }}};
  for (double a : ends)
    for (double b : ends)
      for (double c : ends)
        for (const Case& one : cases) {
          INFO(one.name << " of " << a << ", " << b << ", " << c);
          // The value, the gradient, and the gradient of the gradient's weighted sum.
          auto numbers_of = [&](const std::function<Tensor(const Tensor&)>& f) {
            Tensor x = doubles({a, b, c});
            Tape outer;
            outer.watch(x);
            Tensor y, first;
            {
              Tape inner;
              y = f(x);
              first = inner.gradient(y, x);
            }
            Values found{y.item()};
            for (const Tensor& more : {first, outer.gradient(sum(first * doubles({1, 3, 8})), x)})
              for (double value : values_of(more)) found.push_back(value);
            return found;
          };
          Values expected = numbers_of([&](const Tensor& x) { return logsumexp(slice(x, 0, 0, one.summed)); }),
                 found = numbers_of(one.f);
          for (std::size_t i = 0; i < expected.size(); ++i)
            CHECK((found[i] == expected[i] || found[i] == Approx(expected[i]).epsilon(1e-12).margin(1e-12)));
        }
}

TEST_CASE("elements of logcumsumexp that are infinite share the gradients of later results") {
  // Results 1 to 4 are ∞: they are shared by one, one, two and three elements.
  Values d = gradient_of(doubles({5, infinity, 1, infinity, infinity}), [](const Tensor& a) {
    return sum(logcumsumexp(a, 0) * doubles({2, 3, 5, 8, 12}));
  });
  const double expected[] = {2, 3 + 5 + 4 + 4, 0, 4 + 4, 4};
  for (std::size_t i = 0; i < 5; ++i) CHECK(d[i] == Approx(expected[i]));
  for (DType dtype : {bf16, f16, f32}) {
    Tensor x = to(doubles({5, infinity, 1, infinity, infinity}), dtype);
    Tape tape;
    tape.watch(x);
    Tensor gradient = tape.gradient(sum(logcumsumexp(x, 0) * to(doubles({2, 3, 5, 8, 12}), dtype)), x);
    CHECK(gradient.dtype() == dtype);
    // The logarithm of a number of shares is rounded, in bf16 to 2⁻⁹ of at most log 3, and so is its exponential.
    for (std::size_t i = 0; i < 5; ++i) CHECK(values_of(gradient)[i] == Approx(expected[i]).epsilon(0x1p-7));
  }
}

TEST_CASE("a running sum of f32 is rounded once") {
  Values y = values_of(cumsum(full({100000}, 0.1f)));
  CHECK(std::abs(y.back() - 1e5 * static_cast<double>(0.1f)) <= 0.51 * last_place(f32) * 16384);
  CHECK(values_of(cumsum(doubles({1, nan, 1})))[0] == 1);
  CHECK(std::isnan(values_of(cumsum(doubles({1, nan, 1})))[2]));
}

TEST_CASE("the median is that of the sorted elements") {
  CHECK(median(doubles({3, 1, 2})).item() == 2);
  CHECK(median(doubles({4, 1, 3, 2})).item() == 2.5);
  CHECK(median(tensor({4, 1, 3, 2})).item() == 2.5);
  CHECK(median(tensor({4, 1, 3, 2})).dtype() == f32);
  CHECK(median(doubles({1, infinity, infinity})).item() == infinity);
  CHECK(median(full({2}, 6e4, {.dtype = f16})).item() == Approx(6e4).epsilon(1e-3));
  CHECK(median(full({}, 7.0)).item() == 7);
  CHECK(values_of(median(tensor({{1.0, 2.0}, {nan, 0.0}}), {1}))[0] == 1.5);
  CHECK(gradient_of(doubles({3, 1, 2}), [](const Tensor& x) { return median(x); }) == Values{0, 0, 1});
  CHECK(gradient_of(doubles({4, 1, 3, 2}), [](const Tensor& x) { return median(x); }) == Values{0, 0, 0.5, 0.5});
  CHECK(gradient_of(doubles({2, 2, 2}), [](const Tensor& x) { return median(x); }) == Values{0, 1, 0});
  CHECK(gradient_of(doubles({5}), [](const Tensor& x) { return median(x); }) == Values{1});
}

TEST_CASE("norms of extreme vectors neither overflow nor vanish") {
  CHECK(norm(tensor({3e38f, 0.f})).item() == Approx(3e38));
  CHECK(norm(tensor({3e-40f, 4e-40f})).item() == Approx(5e-40).epsilon(1e-4));
  CHECK(norm(doubles({3e300, 4e300})).item() == Approx(5e300));
  CHECK(norm(doubles({3e-300, 4e-300})).item() == Approx(5e-300));
  CHECK(norm(doubles({3e-310, 4e-310})).item() == Approx(5e-310));
  CHECK(norm(doubles({1e200, 1e200}), {.p = 3}).item() == Approx(std::cbrt(2) * 1e200));
  CHECK(norm(doubles({1e200, 1e200}), {.p = -2}).item() == Approx(std::sqrt(0.5) * 1e200));
  CHECK(norm(doubles({2, 1}), {.p = 5000}).item() == Approx(2));
  CHECK(norm(to(doubles({200, 200}), f16)).item() == Approx(200 * std::sqrt(2)).epsilon(1e-3));
  CHECK(norm(doubles({3, -4, 0}), {.p = 0}).item() == 2);
  CHECK(norm(doubles({3, -4, 0}), {.p = 1}).item() == 7);
  CHECK(norm(doubles({3, -4, 0})).item() == 5);
  CHECK(norm(doubles({3, -4, 0}), {.p = infinity}).item() == 4);
  CHECK(norm(doubles({3, -4, 0}), {.p = -infinity}).item() == 0);
  CHECK(norm(doubles({3, -4, 0}), {.p = -1}).item() == 0);
  for (double p : {1.0, 2.0, 3.0, 0.5, infinity}) {
    CAPTURE(p);
    CHECK(norm(doubles({infinity, 1}), {.p = p}).item() == infinity);
    CHECK(std::isnan(norm(doubles({nan, 1}), {.p = p}).item()));
    CHECK(norm(zeros({3}), {.p = p}).item() == 0);
  }
  CHECK(std::isnan(norm(tensor({NAN, 1.f})).item()));
  CHECK(norm(tensor({INFINITY, 1.f})).item() == infinity);
}

TEST_CASE("the gradient of a norm at 0 is 0") {
  for (double p : {0.0, 1.0, 2.0, 3.0, 1.5, 0.5, -1.0, infinity, -infinity}) {
    CAPTURE(p);
    auto f = [=](const Tensor& x) { return norm(x, {.p = p}); };
    CHECK(gradient_of(zeros({3}), f) == Values{0, 0, 0});
    CHECK(gradient_of(doubles({0, 2, 1}), f)[0] == 0);
  }
  CHECK(gradient_of(doubles({3, -3, 1}), [](const Tensor& x) { return norm(x, {.p = infinity}); }) ==
        Values{0.5, -0.5, 0});
  CHECK(gradient_of(doubles({0, -4}), [](const Tensor& x) { return norm(x); }) == Values{0, -1});
  CHECK(gradient_of(doubles({0, -4}), [](const Tensor& x) { return norm(x, {.p = -1}); }) == Values{0, 0});
}

TEST_CASE("gradients of norms and deviations of denormal numbers are finite") {
  CHECK(gradient_of(tensor({1e-40f}), [](const Tensor& x) { return norm(x); }) == Values{1});
  CHECK(gradient_of(doubles({0, -1e-310}), [](const Tensor& x) { return norm(x); }) == Values{0, -1});
  Values d = gradient_of(tensor({1e-40f, 3e-40f}), [](const Tensor& x) { return reel::std(x); });
  CHECK(d[0] == Approx(-0.5).epsilon(1e-4));
  CHECK(d[1] == Approx(0.5).epsilon(1e-4));
}

TEST_CASE("more equal elements than f16 can count share the gradient") {
  Values d = gradient_of(zeros({100000}, {.dtype = f16}), [](const Tensor& x) { return max(x); });
  CHECK(d[0] == Approx(1e-5).epsilon(1e-2));
}

TEST_CASE("logsumexp of extreme rows") {
  Tensor x = tensor({{1e30, 0.0, -1e30},
                     {-infinity, -infinity, -infinity},
                     {infinity, 1.0, -infinity},
                     {1000.0, 1000.0, 1000.0},
                     {-infinity, 2.0, -infinity}});
  for (DType dtype : {f32, f64}) {
    Tensor rows = to(x, dtype);
    Values y = values_of(logsumexp(rows, {1}));
    CHECK(y[0] == Approx(1e30));
    CHECK(y[1] == -infinity);
    CHECK(y[2] == infinity);
    CHECK(y[3] == Approx(1000 + std::log(3)));
    CHECK(y[4] == 2);
    Values d = gradient_of(rows, [](const Tensor& a) { return logsumexp(a, {1}); });
    CHECK(Values(d.begin(), d.begin() + 9) == Values{1, 0, 0, 0, 0, 0, 1, 0, 0});
    CHECK(d[9] == Approx(1.0 / 3));
    CHECK(Values(d.begin() + 12, d.end()) == Values{0, 1, 0});
  }
  CHECK(std::isnan(logsumexp(doubles({nan, infinity})).item()));
}

TEST_CASE("what reductions and scans give for nothing") {
  Tensor none = zeros({0}), rows = zeros({2, 0});
  CHECK(prod(none).item() == 1);
  CHECK(values_of(prod(rows, {1})) == Values{1, 1});
  CHECK(prod(zeros({0}, {.dtype = boolean})).item<std::int64_t>() == 1);
  CHECK(!any(none).item<bool>());
  CHECK(all(none).item<bool>());
  CHECK(values_of(all(rows, {1})) == Values{1, 1});
  CHECK(count_nonzero(none).item() == 0);
  CHECK(std::isnan(var(none).item()));
  CHECK(std::isnan(reel::std(none, {.correction = 1}).item()));
  CHECK(logsumexp(none).item() == -infinity);
  CHECK(norm(none).item() == 0);
  CHECK(norm(none, {.p = 0}).item() == 0);
  CHECK(cumsum(rows, 1).shape() == Shape{2, 0});
  CHECK(cumprod(rows).shape() == Shape{0});
  for (const Tensor& y : {min(rows, {0}), median(rows, {0}), argmax(rows, 0), norm(rows, {0}, {.p = infinity})})
    CHECK(y.shape() == Shape{0});
  CHECK(gradient_of(rows, [](const Tensor& x) { return prod(x); }).empty());
  CHECK(gradient_of(rows, [](const Tensor& x) { return median(x, {0}); }).empty());
}

TEST_CASE("reductions over no axes leave the elements as they are") {
  Tensor x = tensor({{1.0, -2.0}, {3.0, 0.0}});
  for (const Tensor& y : {sum(x, Shape{}), prod(x, Shape{}), max(x, Shape{}), median(x, Shape{}), mean(x, Shape{})})
    CHECK(same_bits(y, x));
  CHECK(values_of(norm(x, Shape{})) == Values{1, 2, 3, 0});
  CHECK(values_of(var(x, Shape{})) == Values{0, 0, 0, 0});
  CHECK(values_of(all(x, Shape{})) == Values{1, 1, 1, 0});
}

TEST_CASE("reductions and scans give the same bits for any number of threads") {
  constexpr std::uint64_t seed = 4;
  CAPTURE(seed);
  manual_seed(seed);
  using Op = Tensor (*)(const Tensor& x, const Shape& axes);
  const std::pair<const char*, Op> ops[] = {
      {"sum", [](const Tensor& x, const Shape& axes) { return sum(x, axes); }},
      {"prod", [](const Tensor& x, const Shape& axes) { return prod(x, axes); }},
      {"min", [](const Tensor& x, const Shape& axes) { return min(x, axes); }},
      {"argmax", [](const Tensor& x, const Shape& axes) { return argmax(x, static_cast<int>(axes[0])); }},
      {"argmin", [](const Tensor& x, const Shape&) { return argmin(x); }},
      {"var", [](const Tensor& x, const Shape& axes) { return var(x, axes); }},
      {"norm", [](const Tensor& x, const Shape& axes) { return norm(x, axes); }},
      {"logsumexp", [](const Tensor& x, const Shape& axes) { return logsumexp(x, axes); }},
      {"median", [](const Tensor& x, const Shape& axes) { return median(x, axes); }},
      {"cumsum", [](const Tensor& x, const Shape& axes) { return cumsum(x, static_cast<int>(axes[0])); }},
  };
  for (const Tensor& x : {rand({130, 1030, 4}) + 0.5, permute(rand({4, 600, 200}), {1, 2, 0})})
    for (const auto& [name, op] : ops)
      for (const Shape& axes : {Shape{0}, Shape{1}, Shape{2}, Shape{0, 1}, Shape{0, 1, 2}}) {
        CAPTURE(name, to_string(axes), to_string(x.shape()));
        Tensor several = op(x, axes), one;
        // A part of a parallel loop has one thread.
        detail::parallel_for(2, 1, [&, run = op](std::int64_t begin, std::int64_t) {
          if (begin == 0) one = run(x, axes);
        });
        CHECK(same_bits(several, one));
      }
}

TEST_CASE("large reductions agree with those of their parts") {
  constexpr std::uint64_t seed = 5;
  CAPTURE(seed);
  manual_seed(seed);
  // Divided into pieces, folded, and with strides.
  Tensor x = randn({400, 1000, 4}, {.dtype = f64});
  std::vector<Tensor> halves = split(x, 200, 0);
  for (const Shape& axes : {Shape{0, 1}, Shape{0, 1, 2}, Shape{0, 2}, Shape{0}}) {
    Tensor whole = sum(x, axes), parts = sum(halves[0], axes) + sum(halves[1], axes);
    CHECK(max(square(whole - parts)).item() < 1e-20);
    CHECK(same_bits(max(x, axes),
                    where(max(halves[0], axes) > max(halves[1], axes), max(halves[0], axes), max(halves[1], axes))));
  }
  std::int64_t place = argmax(x).item<std::int64_t>();
  CHECK(reshape(x, {-1}).to_vector<double>()[static_cast<std::size_t>(place)] == max(x).item());
  Tensor transposed = transpose(x, 0, 2);
  CHECK(select(reshape(transposed, {-1}), 0, argmin(transposed).item<std::int64_t>()).item() == min(x).item());
  Tensor repeated = expand(tensor({1.0, 5.0, 5.0}), {200000, 3});
  CHECK(argmax(repeated).item() == 1);
  CHECK(values_of(argmax(repeated, 0)) == Values{0, 0, 0});
  CHECK(sum(repeated).item() == 2200000);
}

TEST_CASE("bad input to reductions and scans is named with the op") {
  const Tensor u, m = zeros({2, 3}), ints = tensor({1, 2}), none = zeros({3, 0});
  const std::string undefined = ": an operand is an undefined tensor";
  all_fail<Error>({
      Bad("sum" + undefined, [&] { sum(u, {0}); }),
      Bad("mean" + undefined, [&] { mean(u); }),
      Bad("prod" + undefined, [&] { prod(u); }),
      Bad("min" + undefined, [&] { min(u, {0}); }),
      Bad("argmax" + undefined, [&] { argmax(u); }),
      Bad("argmin" + undefined, [&] { argmin(u, 0); }),
      Bad("any" + undefined, [&] { any(u); }),
      Bad("all" + undefined, [&] { all(u, {0}); }),
      Bad("count_nonzero" + undefined, [&] { count_nonzero(u); }),
      Bad("var" + undefined, [&] { var(u); }),
      Bad("std" + undefined, [&] { reel::std(u, {0}); }),
      Bad("norm" + undefined, [&] { norm(u); }),
      Bad("logsumexp" + undefined, [&] { logsumexp(u); }),
      Bad("median" + undefined, [&] { median(u); }),
      Bad("cumsum" + undefined, [&] { cumsum(u); }),
      Bad("cumprod" + undefined, [&] { cumprod(u, 0); }),
      Bad("logcumsumexp" + undefined, [&] { logcumsumexp(u, 0); }),
      Bad("norm: p is NaN, for (2, 3) f32", [&] { norm(m, {.p = nan}); }),
  });
  const std::string missing = ": axis 2 does not exist in (2, 3) f32";
  all_fail<ShapeError>({
      Bad("mean" + missing, [&] { mean(m, {2}); }),
      Bad("prod" + missing, [&] { prod(m, {2}); }),
      Bad("min" + missing, [&] { min(m, {2}); }),
      Bad("argmax" + missing, [&] { argmax(m, 2); }),
      Bad("argmin" + missing, [&] { argmin(m, 2); }),
      Bad("argmax: takes one axis, or all of them, not (0, 1), for (2, 3) f32",
          [&] {
            argmax(m, {0, 1});
          }),
      Bad("argmin: takes one axis, or all of them, not (), for (2, 3) f32", [&] { argmin(m, Shape{}); }),
      Bad("any" + missing, [&] { any(m, {2}); }),
      Bad("all" + missing, [&] { all(m, {2}); }),
      Bad("count_nonzero" + missing, [&] { count_nonzero(m, {2}); }),
      Bad("var" + missing, [&] { var(m, {2}); }),
      Bad("std" + missing, [&] { reel::std(m, {2}); }),
      Bad("norm" + missing, [&] { norm(m, {2}); }),
      Bad("logsumexp" + missing, [&] { logsumexp(m, {2}); }),
      Bad("median" + missing, [&] { median(m, {2}); }),
      Bad("cumsum" + missing, [&] { cumsum(m, 2); }),
      Bad("cumprod" + missing, [&] { cumprod(m, 2); }),
      Bad("logcumsumexp" + missing, [&] { logcumsumexp(m, 2); }),
      Bad("cumsum: axis 0 does not exist in () f32", [&] { cumsum(zeros({}), 0); }),
      Bad("prod: axis 1 is named twice in (1, 1)",
          [&] {
            prod(m, Shape{1, 1});
          }),
      Bad("var: axis -1 is named twice in (1, -1)",
          [&] {
            var(m, Shape{1, -1});
          }),
      Bad("norm: axis 0 is named twice",
          [&] {
            norm(m, Shape{0, 0});
          }),
      Bad("median: axis 0 is named twice",
          [&] {
            median(m, Shape{0, 0});
          }),
      Bad("min: there is no smallest element of nothing: (3, 0) f32", [&] { min(none); }),
      Bad("max: there is no largest element of nothing: (3, 0) f32", [&] { max(none, {1}); }),
      Bad("argmax: there is no largest element of nothing", [&] { argmax(none); }),
      Bad("argmin: there is no smallest element of nothing", [&] { argmin(none, 1); }),
      Bad("median: there is no middle element of nothing", [&] { median(none, {1}); }),
      Bad("norm: there is no largest or smallest magnitude of nothing", [&] { norm(none, {.p = infinity}); }),
      Bad("norm: there is no largest or smallest magnitude of nothing", [&] { norm(none, {1}, {.p = -1}); }),
  });
  all_fail<DTypeError>({
      Bad("mean: takes a floating tensor, not (2,) i32", [&] { mean(ints); }),
      Bad("var: takes a floating tensor, not (2,) i32", [&] { var(ints); }),
      Bad("std: takes a floating tensor, not (2,) i32", [&] { reel::std(ints); }),
      Bad("norm: takes a floating tensor, not (2,) i32", [&] { norm(ints); }),
      Bad("prod: takes a tensor here, not the number 3", [&] { prod(3); }),
      Bad("cumsum: takes a tensor here, not the number 3", [&] { cumsum(3); }),
      Bad("median: takes a tensor here, not the number 3", [&] { median(3); }),
  });
}

}  // namespace reel_test
