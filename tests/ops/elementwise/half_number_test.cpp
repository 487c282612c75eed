#include <reel/batching.h>
#include <reel/reel.h>

#include <cmath>
#include <vector>

#include "catch.h"
#include "ops/table/table.h"
#include "rounded.h"

// A plain number beside bf16 or f16 enters the arithmetic in f32, and the result is rounded once. The references are formulas of
// f64 on the halves and on the number in f32.

namespace reel_test {

using namespace reel;

namespace {

constexpr std::uint64_t seed = 4312;
constexpr double numbers[] = {0.3, 3, 1e5, 65536, 1e-8, -1e9, -0.1, 0.7};

struct NumberRow {
  const char* name;
  Tensor (*op)(const Tensor& x, double c);
  double (*exact)(double x, double c);
  /// The gradient for the gradient d of the result; null: not checked here.
  double (*gradient)(double d, double x, double c) = nullptr;
  /// Where the results of f32 are those of f64, rounded: for additions, multiplications, divisions and choices.
  bool basic = false;
  bool takes_negative_x = true, takes_negative_c = true;
  /// How often the gradient is rounded to the half.
  int roundings = 1;
};

double remainder_of(double x, double c) {
  double rest = std::fmod(x, c);
  return rest != 0 && (rest < 0) != (c < 0) ? rest + c : rest;
}
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
constexpr double level = 0.75;  // a half
Tensor levels(const Tensor& x) { return full(x.shape(), level, {.dtype = x.dtype(), .device = x.device()}); }
template <auto overwrite>
Tensor overwritten(const Tensor& x, double c) {
  Tensor y = copy(x);
  overwrite(y, c);
  return y;
}

using C = double;
const NumberRow rows[] = {
    {"x + c", [](const Tensor& x, C c) { return x + c; }, [](C x, C c) { return x + c; }, [](C d, C, C) { return d; },
     true},
    {"c + x", [](const Tensor& x, C c) { return c + x; }, [](C x, C c) { return x + c; }, [](C d, C, C) { return d; },
     true},
    {"x - c", [](const Tensor& x, C c) { return x - c; }, [](C x, C c) { return x - c; }, [](C d, C, C) { return d; },
     true},
    {"c - x", [](const Tensor& x, C c) { return c - x; }, [](C x, C c) { return c - x; }, [](C d, C, C) { return -d; },
     true},
    {"x * c", [](const Tensor& x, C c) { return x * c; }, [](C x, C c) { return x * c; },
     [](C d, C, C c) { return d * c; }, true},
    {"c * x", [](const Tensor& x, C c) { return c * x; }, [](C x, C c) { return x * c; },
     [](C d, C, C c) { return d * c; }, true},
    {"x / c", [](const Tensor& x, C c) { return x / c; }, [](C x, C c) { return x / c; },
     [](C d, C, C c) { return d / c; }, true},
    {"c / x", [](const Tensor& x, C c) { return c / x; }, [](C x, C c) { return c / x; },
     [](C d, C x, C c) { return -d * c / (x * x); }, true, true, true, 3},
    {"x % c", [](const Tensor& x, C c) { return x % c; }, remainder_of, [](C d, C, C) { return d; }, true},
    {"c % x", [](const Tensor& x, C c) { return c % x; }, [](C x, C c) { return remainder_of(c, x); },
     [](C d, C x, C c) { return -d * std::nearbyint((c - remainder_of(c, x)) / x); }, true},
    {"floor_divide(x, c)", [](const Tensor& x, C c) { return floor_divide(x, c); },
     [](C x, C c) { return std::nearbyint((x - remainder_of(x, c)) / c); }, [](C, C, C) { return 0.0; }, true},
    {"fmod(x, c)", [](const Tensor& x, C c) { return fmod(x, c); }, [](C x, C c) { return std::fmod(x, c); },
     [](C d, C, C) { return d; }, true},
    {"pow(x, c)", [](const Tensor& x, C c) { return pow(x, c); }, [](C x, C c) { return std::pow(x, c); },
     [](C d, C x, C c) { return d * c * std::pow(x, c - 1); }, false, false},
    {"pow(c, x)", [](const Tensor& x, C c) { return pow(c, x); }, [](C x, C c) { return std::pow(c, x); },
     [](C d, C x, C c) { return d * std::pow(c, x) * std::log(c); }, false, true, false, 2},
    {"logaddexp(x, c)", [](const Tensor& x, C c) { return logaddexp(x, c); },
     [](C x, C c) { return std::max(x, c) + std::log1p(std::exp(-std::abs(x - c))); },
     [](C d, C x, C c) { return d * sigmoid_of(x - c); }},
    {"atan2(x, c)", [](const Tensor& x, C c) { return atan2(x, c); }, [](C x, C c) { return std::atan2(x, c); },
     [](C d, C x, C c) { return d * c / (x * x + c * c); }},
    {"atan2(c, x)", [](const Tensor& x, C c) { return atan2(c, x); }, [](C x, C c) { return std::atan2(c, x); },
     [](C d, C x, C c) { return -d * c / (x * x + c * c); }},
    {"xlogy(x, c)", [](const Tensor& x, C c) { return xlogy(x, c); }, [](C x, C c) { return x * std::log(c); },
     [](C d, C, C c) { return d * std::log(c); }, false, true, false},
    {"xlogy(c, x)", [](const Tensor& x, C c) { return xlogy(c, x); }, [](C x, C c) { return c * std::log(x); },
     [](C d, C x, C c) { return d * c / x; }, false, false},
    {"lerp(x, level, c)", [](const Tensor& x, C c) { return lerp(x, levels(x), c); },
     [](C x, C c) { return x + c * (level - x); }, [](C d, C, C c) { return d * (1 - c); }, false, false},
    {"lerp(level, x, c)", [](const Tensor& x, C c) { return lerp(levels(x), x, c); },
     [](C x, C c) { return level + c * (x - level); }, [](C d, C, C c) { return d * c; }, false, false},
    {"lerp(x, c, level)", [](const Tensor& x, C c) { return lerp(x, c, level); },
     [](C x, C c) { return x + level * (c - x); }, [](C d, C, C) { return d * (1 - level); }, false, false, false},
    {"leaky_relu(x, c)", [](const Tensor& x, C c) { return leaky_relu(x, {.slope = c}); },
     [](C x, C c) { return x > 0 ? x : x * c; }, [](C d, C x, C c) { return x > 0 ? d : d * c; }, true},
    {"elu(x, c)", [](const Tensor& x, C c) { return elu(x, {.alpha = c}); },
     [](C x, C c) { return x > 0 ? x : c * std::expm1(x); },
     [](C d, C x, C c) { return x > 0 ? d : d * c * std::exp(x); }},
    {"softplus(x, c)", [](const Tensor& x, C c) { return softplus(x, {.beta = c}); },
     [](C x, C c) { return c * x > 20 ? x : std::log1p(std::exp(c * x)) / c; },
     [](C d, C x, C c) { return c * x > 20 ? d : d * sigmoid_of(c * x); }, false, true, false},
    {"clamp(x, -1, c)", [](const Tensor& x, C c) { return clamp(x, -1, c); },
     [](C x, C c) { return std::min(std::max(x, -1.0), c); }, nullptr, true},
    {"maximum(x, c)", [](const Tensor& x, C c) { return maximum(x, c); }, [](C x, C c) { return std::max(x, c); },
     nullptr, true},
    {"minimum(c, x)", [](const Tensor& x, C c) { return minimum(c, x); }, [](C x, C c) { return std::min(x, c); },
     nullptr, true},
    {"where(x > 0, x, c)", [](const Tensor& x, C c) { return where(x > 0, x, c); },
     [](C x, C c) { return x > 0 ? x : c; }, [](C d, C x, C) { return x > 0 ? d : 0.0; }, true},
    {"x += c", overwritten<[](Tensor& y, C c) { y += c; }>, [](C x, C c) { return x + c; }, [](C d, C, C) { return d; },
     true},
    {"x -= c", overwritten<[](Tensor& y, C c) { y -= c; }>, [](C x, C c) { return x - c; }, [](C d, C, C) { return d; },
     true},
    {"x *= c", overwritten<[](Tensor& y, C c) { y *= c; }>, [](C x, C c) { return x * c; },
     [](C d, C, C c) { return d * c; }, true},
    {"x /= c", overwritten<[](Tensor& y, C c) { y /= c; }>, [](C x, C c) { return x / c; },
     [](C d, C, C c) { return d / c; }, true},
    {"masked_fill_(x, x > 0, c)", overwritten<[](Tensor& y, C c) { masked_fill_(y, y > 0, c); }>,
     [](C x, C c) { return x > 0 ? c : x; }, nullptr, true},
};

double in_f32(double x) { return static_cast<double>(static_cast<float>(x)); }

double half_of(double x, DType dtype) { return std::isfinite(x) ? rounded(x, dtype) : x; }

// Half of a unit in the last place.
double half_step(double x, DType dtype) {
  int bits = dtype == bf16 ? 8 : 11, smallest = dtype == bf16 ? -126 : -14;
  return std::ldexp(0.5, std::max(x == 0 ? smallest : std::ilogb(x), smallest) - (bits - 1));
}

// Whether `found` is `exact` after a number of roundings to the half: each is off by at most half a step, and half a step of an earlier
// one may be a whole step of the result. f32's own errors are below 1/64 of a half's.
bool is_rounded(double found, double exact, DType dtype, bool basic, int roundings) {
  if (std::isnan(found) || std::isnan(exact)) return std::isnan(found) == std::isnan(exact);
  double expected = half_of(in_f32(exact), dtype);
  if (found == expected || basic) return found == expected;
  if (!std::isfinite(found) || !std::isfinite(expected)) return false;
  double steps = roundings == 1 ? 1 : 2 * roundings;
  return std::abs(found - exact) <= half_step(exact, dtype) * (steps + 1.0 / 64);
}

bool takes(const NumberRow& row, double c) { return c > 0 || row.takes_negative_c; }

Tensor draw_x(const NumberRow& row, DType dtype, const Shape& shape, std::uint64_t salt = 0) {
  Generator generator(seed + salt);
  Tensor x = randn(shape, {.dtype = f64, .generator = &generator}) * 2.0;
  return to(row.takes_negative_x ? x : abs(x) + 0.01, dtype);
}

std::vector<double> wide(const Tensor& x) {
  NoRecord pause;
  return to(x, f64).to_vector<double>();
}

}  // namespace

TEST_CASE("a number beside halves enters in f32, and results and gradients are rounded once") {
  INFO("seed " << seed);
  for (DType dtype : {bf16, f16})
    for (const NumberRow& row : rows)
      for (double c : numbers)
        for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{3, 40}, Shape{700}}) {
          if (!takes(row, c)) continue;
          CAPTURE(name_of(dtype), row.name, c, to_string(shape));
          Tensor x = draw_x(row, dtype, shape), d = to(draw_x(row, f64, shape, 1), dtype);
          Tape tape;
          tape.watch(x);
          Tensor y = row.op(x, c);
          REQUIRE(y.dtype() == dtype);
          REQUIRE(y.shape() == shape);
          Tensor gradient = tape.gradient(y, x, GradientOptions{.seed = d});
          REQUIRE(gradient.dtype() == dtype);
          std::vector<double> from = wide(x), found = wide(y), given = wide(d), back = wide(gradient);
          int wrong = 0, wrong_gradients = 0;
          for (std::size_t i = 0; i < from.size(); ++i) {
            double exact = row.exact(from[i], in_f32(c));
            wrong += !is_rounded(found[i], exact, dtype, row.basic, 1);
            // Gradients that are computed from the result are exact only where it is a normal half.
            bool normal = std::isnormal(found[i]) && std::abs(found[i]) >= (dtype == f16 ? 0x1p-14 : 0x1p-126);
            if (!row.gradient || (row.roundings > 1 && !normal)) continue;
            wrong_gradients += !is_rounded(back[i], row.gradient(given[i], from[i], in_f32(c)), dtype,
                                           row.basic && row.roundings == 1, row.roundings);
          }
          CHECK(wrong == 0);
          CHECK(wrong_gradients == 0);
        }
}

TEST_CASE("an f64 tensor's numbers stay f64, and integers beside halves are as exact as f32") {
  CHECK((tensor({1.0}) * 0.1).item() == 0.1);
  Tensor x = to(tensor({0.0, 1.0}), f16);
  CHECK(wide(x / 70000) == std::vector<double>{0, rounded(1.0 / 70000, f16)});
  CHECK(wide(70000 * x) == std::vector<double>{0, INFINITY});
}

TEST_CASE("a tensor of rank 0 that is no half enters as a number does, with a gradient of its own dtype") {
  INFO("seed " << seed);
  for (DType dtype : {bf16, f16})
    for (double c : {0.3, 1e5}) {
      CAPTURE(name_of(dtype), c);
      Tensor x = draw_x(rows[0], dtype, {37});
      for (DType other : {f32, f64}) {
        CHECK(same_bits(x * full({}, c, {.dtype = other}), x * c));
        CHECK(same_bits(full({}, c, {.dtype = other}) / x, c / x));
      }
      CHECK(same_bits(x / to(tensor(std::int64_t{100000}), i64), x / 1e5));
      Tensor factor = full({}, c, {.dtype = f32}), untracked = copy(factor);
      Tape tape;
      tape.watch(x);
      tape.watch(factor);
      Tensor y = x * factor / factor - factor;
      CHECK(same_bits(y, x * untracked / untracked - untracked));
      auto [of_x, of_factor] = tape.gradient(sum(to(y, f32)), x, factor);
      CHECK(of_x.dtype() == dtype);
      CHECK(of_factor.dtype() == f32);
      CHECK(of_factor.shape() == Shape{});
    }
}

TEST_CASE("a tensor of rank 0 gets the sum of its gradients in f32, beyond the range of f16") {
  Tensor x = to(full({4000}, 30.0), f16), factor = full({}, 1.0, {.dtype = f32});
  Tape tape;
  tape.watch(factor);
  Tensor y = x * factor;
  CHECK(tape.gradient(y, factor, GradientOptions{.seed = ones({4000}, {.dtype = f16})}).item() == 120000);
}

TEST_CASE("a number's derivatives of second order are those of f32, rounded") {
  INFO("seed " << seed);
  for (DType dtype : {bf16, f16})
    for (const NumberRow& row : rows)
      for (const Shape& shape : {Shape{}, Shape{9}}) {
        if (!row.gradient || row.roundings != 1) continue;
        double c = 0.3;
        CAPTURE(name_of(dtype), row.name, to_string(shape));
        Tensor x = draw_x(row, dtype, shape), d = to(draw_x(row, f64, shape, 1), dtype);
        auto second = [&](const Tensor& x, const Tensor& d) {
          Tape outer;
          outer.watch(x);
          outer.watch(d);
          Tensor first;
          {
            Tape tape;
            tape.watch(x);
            first = tape.gradient(row.op(x, c), x, GradientOptions{.seed = d});
          }
          return outer.gradient(sum(first), std::vector<Tensor>{x, d}, {.unconnected = Unconnected::zeros});
        };
        std::vector<Tensor> found = second(x, d), expected = second(to(x, f64), to(d, f64));
        for (std::size_t k = 0; k < 2; ++k) {
          REQUIRE(found[k].dtype() == dtype);
          Tensor error = abs(to(found[k], f64) - expected[k]);
          // Some of these derivatives are products of up to four halves.
          double bound = dtype == bf16 ? 0x1p-6 : 0x1p-9;
          CHECK(all(error <= bound * (abs(expected[k]) + 1.0)).item<bool>());
        }
      }
}

TEST_CASE("comparisons take a number as the half that it rounds to") {
  for (DType dtype : {bf16, f16}) {
    Tensor x = full({3}, 0.3, {.dtype = dtype});
    CHECK(all(x == 0.3).item<bool>());
    CHECK(all(x <= 0.3).item<bool>());
    CHECK(all(x >= 0.3).item<bool>());
    CHECK(!any(x != 0.3).item<bool>());
    CHECK(!any(0.3 < x).item<bool>());
    CHECK(allclose(x, 0.3));
    // Bounds round as elements do: the gradient of clamp is 1 there.
    Tape tape;
    tape.watch(x);
    CHECK(wide(tape.gradient(sum(clamp(x, 0.3, 1)), x)) == std::vector<double>{1, 1, 1});
  }
}

TEST_CASE("parts and transposed halves take a number as contiguous ones do") {
  INFO("seed " << seed);
  for (DType dtype : {bf16, f16})
    for (double c : {0.3, 1e5}) {
      CAPTURE(name_of(dtype), c);
      Tensor x = draw_x(rows[0], dtype, {6, 40});
      Tensor y = copy(x), transposed = transpose(y);
      transposed *= c;
      CHECK(same_bits(y, x * c));
      y = copy(x);
      y(slice(0, 6, 2)) /= c;
      CHECK(same_bits(copy(y(2)), copy(x(2)) / c));
      CHECK(same_bits(copy(y(1)), copy(x(1))));
      y = copy(x);
      y(x > 0) -= c;
      CHECK(same_bits(y, where(x > 0, x - c, x)));
    }
}

TEST_CASE("a number that index_put adds to halves is not rounded") {
  INFO("seed " << seed);
  for (DType dtype : {bf16, f16})
    for (double c : {0.3, 1e-3, -1e5}) {
      CAPTURE(name_of(dtype), c);
      Tensor x = draw_x(rows[0], dtype, {5, 7}), index = tensor({0, 3, 3});
      Tape tape;
      tape.watch(x);
      Tensor y = index_put(x, {index}, c, {.accumulate = true});
      std::vector<double> from = wide(x), found = wide(y);
      for (std::size_t i = 0; i < found.size(); ++i) {
        int times = i / 7 == 0 ? 1 : i / 7 == 3 ? 2 : 0;
        CHECK(is_rounded(found[i], from[i] + times * in_f32(c), dtype, false, 1));
      }
      CHECK(wide(tape.gradient(y, x, GradientOptions{.seed = ones({5, 7}, {.dtype = dtype})})) ==
            std::vector<double>(35, 1));
    }
}

TEST_CASE("addmm scales halves in f32") {
  INFO("seed " << seed);
  for (DType dtype : {bf16, f16})
    for (double factor : {0.3, 1e5, 1e-8}) {
      CAPTURE(name_of(dtype), factor);
      Tensor c = draw_x(rows[0], dtype, {6, 5}), a = draw_x(rows[0], dtype, {6, 1}), b = ones({1, 5}, {.dtype = dtype});
      Tensor found = addmm(c, a, b, {.beta = factor, .alpha = 0.7});
      std::vector<double> y = wide(found), z = wide(c), x = wide(a);
      for (std::size_t i = 0; i < y.size(); ++i)
        CHECK(is_rounded(y[i], in_f32(factor) * z[i] + in_f32(0.7) * x[i / 5], dtype, false, 1));
      CHECK(same_bits(addmm(c, a, b, {.beta = 0, .alpha = factor}), expand(a * factor, {6, 5})));
    }
}

TEST_CASE("numbers beside halves give the same bits in a batch as one by one") {
  INFO("seed " << seed);
  std::vector<double> examples;
  for (double c : {0.3, 0.3, 0.7, 2.0, 1e5, 1e-3}) examples.push_back(c);
  for (DType dtype : {bf16, f16})
    for (const NumberRow& row : rows)
      for (const Shape& shape : {Shape{}, Shape{7}, Shape{2, 5}})
        for (bool shared : {false, true}) {
          CAPTURE(name_of(dtype), row.name, to_string(shape), shared);
          std::vector<Tensor> sources(1);
          for (std::size_t k = 0; k < (shared ? 1 : examples.size()); ++k)
            sources.resize(k + 1), sources[k] = draw_x(row, dtype, shape, k);
          auto run = [&](const BatchOptions& options) {
            Tape tape;
            for (const Tensor& x : sources) tape.watch(x);
            std::vector<int> order;
            for (std::size_t k = 0; k < examples.size(); ++k) order.push_back(static_cast<int>(k));
            std::vector<Tensor> results = batch_map(
                order,
                [&](int k) {
                  auto at = static_cast<std::size_t>(k);
                  // Computed within the example, so that it can be overwritten there.
                  return row.op(sources[shared ? 0 : at] + 0, examples[at]);
                },
                options);
            Tensor total = zeros({}, {.dtype = f32});
            for (const Tensor& y : results) total = total + sum(to(y, f32) * 0.7);
            std::vector<Tensor> gradients = tape.gradient(total, sources, {.unconnected = Unconnected::zeros});
            results.insert(results.end(), gradients.begin(), gradients.end());
            return results;
          };
          std::vector<Tensor> found = run({}), expected = run({.immediate = true});
          for (std::size_t k = 0; k < found.size(); ++k) {
            CAPTURE(k);
            REQUIRE(found[k].dtype() == dtype);
            CHECK(same_bits(found[k], expected[k]));
          }
        }
}

}  // namespace reel_test
