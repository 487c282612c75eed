#include <reel/reel.h>

#include <cmath>

#include "catch.h"
#include "ops/bad_input.h"
#include "ops/gradient_orders.h"
#include "ops/numbers.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr std::uint64_t seed = 71;

struct Pair {
  std::string name;
  std::function<Tensor(const Tensor&)> fused, composed;
};

Tensor composed_gelu(const Tensor& x) { return x * (erf(x * std::sqrt(0.5)) + 1) * 0.5; }
Tensor composed_tanh_gelu(const Tensor& x) {
  return x * 0.5 * (tanh((x + square(x) * x * 0.044715) * 0.7978845608028654) + 1);
}
Tensor composed_elu(const Tensor& x, double alpha) { return where(x > 0, x, (exp(x) - 1) * alpha); }
Tensor composed_softmax(const Tensor& x, const Tensor& mask) {
  Tensor e = where(mask, exp(x), 0.0);
  return e / maximum(sum(e, {-1}, {.keepdims = true}), 1e-300);
}

std::vector<Pair> pairs() {
  Tensor mask = tensor({{true, false, true, true, true},
                        {false, false, false, false, false},
                        {false, true, false, false, false},
                        {true, true, true, true, true}});
  return {
      {"leaky_relu", [](auto& x) { return leaky_relu(x, {.slope = 0.2}); },
       [](auto& x) { return where(x > 0, x, x * 0.2); }},
      {"gelu", [](auto& x) { return gelu(x); }, composed_gelu},
      {"gelu by tanh", [](auto& x) { return gelu(x, {.approximate = GeluApproximation::tanh}); }, composed_tanh_gelu},
      {"silu", [](auto& x) { return silu(x); }, [](auto& x) { return x * sigmoid(x); }},
      {"elu", [](auto& x) { return elu(x, {.alpha = 1.5}); }, [](auto& x) { return composed_elu(x, 1.5); }},
      {"selu", [](auto& x) { return selu(x); },
       [](auto& x) { return composed_elu(x, 1.6732632423543772) * 1.0507009873554805; }},
      {"softplus", [](auto& x) { return softplus(x, {.beta = 2, .threshold = 3}); },
       [](auto& x) { return where(x * 2 > 3, x, log1p(exp(x * 2)) / 2); }},
      {"hardtanh", [](auto& x) { return hardtanh(x, {.low = -0.5, .high = 1.5}); },
       [](auto& x) { return clamp(x, -0.5, 1.5); }},
      {"masked softmax", [mask](auto& x) { return softmax(x, -1, {.mask = mask}); },
       [mask](auto& x) { return composed_softmax(x, mask); }},
      {"masked log_softmax", [mask](auto& x) { return where(mask, log_softmax(x, -1, {.mask = mask}), 0.0); },
       [mask](auto& x) { return where(mask, log(where(mask, composed_softmax(x, mask), 1.0)), 0.0); }},
      {"sparsemax", [](auto& x) { return sparsemax(x); },
       [](auto& x) {
         Tensor support = to(sparsemax(stop_gradient(x)) > 0, x.dtype());
         Tensor threshold = (sum(x * support, {-1}, {.keepdims = true}) - 1) / sum(support, {-1}, {.keepdims = true});
         return (x - threshold) * support;
       }},
  };
}

using Run = std::function<Tensor(const Tensor&)>;

// A function's gradient, fused and recorded.
std::vector<double> gradients(const Run& f, const Tensor& x, bool recorded) {
  auto gradient = [&] {
    Tape tape;
    tape.watch(x);
    return tape.gradient(sum(f(x)), x);
  };
  if (!recorded) return values_of(gradient());
  Tape outer;
  outer.watch(x);
  return values_of(gradient());
}

}  // namespace

TEST_CASE("activations' fused gradients equal those of composed ops, to first and second order") {
  CAPTURE(seed);
  manual_seed(seed);
  Tensor x = randn({4, 5}, {.dtype = f64}) * 2;
  for (const Pair& pair : pairs()) {
    CAPTURE(pair.name);
    // Squared, so that linear ones have a second order, too.
    check_orders([&](auto in) { return square(pair.fused(in[0])); },
                 [&](auto in) { return square(pair.composed(in[0])); }, {x});
    CHECK(apart({pair.fused(x)}, {pair.composed(x)}) < 1e-13);
  }
}

TEST_CASE("activations of infinite, huge and tiny numbers and NaN") {
  for (DType dtype : {f32, f64, bf16, f16}) {
    CAPTURE(reel::name_of(dtype));
    Tensor x = to(tensor({-infinity, -60000.0, -0.0, 0x1p-20, 60000.0, infinity, nan}), dtype);
    double huge = values_of(x)[4];
    const std::vector<Pair> functions = pairs();
    for (std::size_t k : {1, 2, 3}) {
      CAPTURE(functions[k].name);
      std::vector<double> y = values_of(functions[k].fused(x));
      CHECK(std::vector<double>(y.begin(), y.begin() + 3) == std::vector<double>{0, 0, 0});
      CHECK(y[3] == Approx(0x1p-21).epsilon(0.01));
      CHECK(y[4] == huge);
      CHECK(y[5] == infinity);
      CHECK(std::isnan(y[6]));
      for (bool recorded : {false, true}) {
        std::vector<double> d = gradients(functions[k].fused, x, recorded);
        CHECK(d[0] == 0);
        CHECK(d[1] == 0);
        CHECK(d[4] == 1);
        CHECK(d[5] == 1);
        CHECK(std::isnan(d[6]));
      }
    }
    std::vector<double> soft = values_of(softplus(x));
    CHECK(soft[0] == 0);
    CHECK(soft[2] == Approx(std::log(2)).epsilon(0.01));
    CHECK(soft[5] == infinity);
    CHECK(std::isnan(soft[6]));
    CHECK(values_of(elu(x))[0] == -1);
    CHECK(values_of(elu(x))[5] == infinity);
    CHECK(std::isnan(values_of(elu(x))[6]));
    CHECK(values_of(leaky_relu(x))[0] == -infinity);
    CHECK(values_of(hardtanh(x))[0] == -1);
    CHECK(std::isnan(values_of(hardtanh(x))[6]));
  }
  // Outside of the range of e^x.
  CHECK(values_of(softplus(tensor({500.0}), {.threshold = 1000}))[0] == 500);
}

TEST_CASE("activations' gradients at kinks are PyTorch's") {
  Tensor x = tensor({0.0, -1.0, 1.0});
  for (bool recorded : {false, true}) {
    CAPTURE(recorded);
    auto at_first = [&](const Run& f) { return gradients(f, x, recorded)[0]; };
    CHECK(at_first([](auto& v) { return leaky_relu(v, {.slope = 0.25}); }) == 0.25);
    CHECK(at_first([](auto& v) { return elu(v, {.alpha = 3}); }) == 3);
    CHECK(at_first([](auto& v) { return selu(v); }) == Approx(1.0507009873554805 * 1.6732632423543772));
    CHECK(gradients([](auto& v) { return hardtanh(v); }, x, recorded) == std::vector<double>{1, 0, 0});
  }
}

TEST_CASE("what a mask leaves out of softmax is 0, and so is its gradient, whatever it holds") {
  Tensor x = tensor({{1.0, nan, 2.0}, {infinity, nan, 1.0}, {-infinity, -infinity, 3.0}});
  Tensor mask = tensor({{true, false, true}, {false, false, false}, {true, true, false}});
  std::vector<double> y = values_of(softmax(x, -1, {.mask = mask}));
  CHECK(y[1] == 0);
  CHECK(y[0] + y[2] == Approx(1));
  CHECK(std::vector<double>(y.begin() + 3, y.end()) == std::vector<double>(6, 0));
  std::vector<double> l = values_of(log_softmax(x, -1, {.mask = mask}));
  CHECK(l[1] == -infinity);
  CHECK(l[2] == Approx(-std::log1p(std::exp(-1))));
  CHECK(std::vector<double>(l.begin() + 3, l.end()) == std::vector<double>(6, -infinity));
  Tensor finite = tensor({{1.0, 5.0, 2.0}, {1.0, 1.0, 1.0}, {4.0, 1.0, 3.0}});
  for (bool recorded : {false, true}) {
    CAPTURE(recorded);
    Run soft = [&](const Tensor& v) { return square(softmax(v, -1, {.mask = mask})); };
    Run log = [&](const Tensor& v) { return exp(log_softmax(v, -1, {.mask = mask})) * 3.0; };
    for (const Run& f : {soft, log}) {
      std::vector<double> d = gradients(f, finite, recorded);
      CHECK(d[1] == 0);
      CHECK(std::vector<double>(d.begin() + 3, d.begin() + 6) == std::vector<double>(3, 0));
      CHECK(d[8] == 0);
      CHECK(std::isfinite(d[0]));
    }
  }
}

TEST_CASE("softmax of a long row does not lose what is added to a large sum") {
  // Equal numbers beside a largest one, added one after the other, are rounded alike.
  constexpr std::int64_t n = 1 << 18;
  for (int k = 0; k < 8; ++k) {
    CAPTURE(k);
    auto low = static_cast<float>(-0.3 - 0.4 * k);
    Tensor x = concat({zeros({1}), full({n - 1}, low)});
    double log_sum = std::log1p((n - 1) * std::exp(static_cast<double>(low)));
    // Four levels of sixteen sums each lose at most 4 · 16 · 2⁻²⁴ = 3.8e-6 of the sum.
    CHECK(std::abs(log_softmax(x)(n - 1).item() - (low - log_sum)) < 4e-6);
    CHECK(std::abs(softmax(x)(n - 1).item() / std::exp(low - log_sum) - 1) < 4e-6);
  }
}

TEST_CASE("sparsemax of known points") {
  CHECK(values_of(sparsemax(tensor({0.0, 0.0}))) == std::vector<double>{0.5, 0.5});
  CHECK(values_of(sparsemax(tensor({3.0, 1.0, -infinity}))) == std::vector<double>{1, 0, 0});
  CHECK(values_of(sparsemax(tensor({1e300, 0.0}))) == std::vector<double>{1, 0});
  CHECK(values_of(sparsemax(tensor({0.25, 0.75}))) == std::vector<double>{0.25, 0.75});
  CHECK(std::isnan(values_of(sparsemax(tensor({nan, 0.0})))[1]));
  CHECK(std::isnan(values_of(sparsemax(tensor({-infinity, -infinity})))[0]));
}

TEST_CASE("activations say what they cannot do") {
  Tensor u, ints = tensor({{1, 2}, {3, 4}}), m = ones({2, 3});
  Tensor flags = tensor({true, false});
  all_fail<Error>({
      Bad("leaky_relu: an operand is an undefined tensor", [&] { leaky_relu(u); }),
      Bad("gelu: an operand is an undefined tensor", [&] { gelu(u); }),
      Bad("silu: an operand is an undefined tensor", [&] { silu(u); }),
      Bad("elu: an operand is an undefined tensor", [&] { elu(u); }),
      Bad("selu: an operand is an undefined tensor", [&] { selu(u); }),
      Bad("softplus: an operand is an undefined tensor", [&] { softplus(u); }),
      Bad("hardtanh: an operand is an undefined tensor", [&] { hardtanh(u); }),
      Bad("glu: an operand is an undefined tensor", [&] { glu(u); }),
      Bad("sparsemax: an operand is an undefined tensor", [&] { sparsemax(u); }),
      Bad("softplus: beta is 0, not above 0", [&] { softplus(m, {.beta = 0}); }),
      Bad("softplus: beta is nan, not above 0", [&] { softplus(m, {.beta = nan}); }),
      Bad("hardtanh: there are no numbers from 2 to 1", [&] { hardtanh(m, {.low = 2, .high = 1}); }),
  });
  all_fail<DTypeError>({
      Bad("leaky_relu: takes a floating tensor, not (2, 2) i32", [&] { leaky_relu(ints); }),
      Bad("gelu: takes a floating tensor, not (2, 2) i32", [&] { gelu(ints); }),
      Bad("silu: takes a floating tensor, not (2, 2) i32", [&] { silu(ints); }),
      Bad("elu: takes a floating tensor, not (2, 2) i32", [&] { elu(ints); }),
      Bad("selu: takes a floating tensor, not (2, 2) i32", [&] { selu(ints); }),
      Bad("softplus: takes a floating tensor, not (2, 2) i32", [&] { softplus(ints); }),
      Bad("hardtanh: takes a floating tensor, not (2, 2) i32", [&] { hardtanh(ints); }),
      Bad("glu: takes a floating tensor, not (2, 2) i32", [&] { glu(ints); }),
      Bad("sparsemax: takes a floating tensor, not (2, 2) i32", [&] { sparsemax(ints); }),
      Bad("softmax: the mask (2, 2) i32 is not of bools",
          [&] {
            softmax(ones({2, 2}), -1, {.mask = ints});
          }),
      Bad("log_softmax: the mask (2, 2) i32 is not of bools",
          [&] {
            log_softmax(ones({2, 2}), -1, {.mask = ints});
          }),
  });
  all_fail<ShapeError>({
      Bad("glu: axis 1 of (2, 3) f32 has no two halves", [&] { glu(m); }),
      Bad("glu: axis 2 does not exist in (2, 3) f32", [&] { glu(m, 2); }),
      Bad("glu: axis -1 does not exist in () f32", [&] { glu(ones({})); }),
      Bad("sparsemax: axis 2 does not exist in (2, 3) f32", [&] { sparsemax(m, 2); }),
      Bad("softmax: the mask (2,) bool does not broadcast to (2, 3) f32", [&] { softmax(m, 0, {.mask = flags}); }),
      Bad("log_softmax: the mask (2,) bool does not broadcast to () f32",
          [&] { log_softmax(ones({}), 0, {.mask = flags}); }),
  });
}

}  // namespace reel_test
