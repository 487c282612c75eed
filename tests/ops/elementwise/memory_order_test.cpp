#include <reel/batching.h>
#include <reel/reel.h>

#include <functional>
#include <string>
#include <vector>

#include "catch.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr ToleranceOptions exactly{.relative = 0, .absolute = 0};

struct Case {
  std::string name;
  std::function<Tensor(const Tensor& x)> of;
};

// Functions of x (4, 2, 3), which itself decides the order of their results.
std::vector<Case> followers() {
  Tensor row = rand({3}) + 1, block = rand({4, 2, 3}) + 1;
  return {
      {"neg", [](auto& x) { return -x; }},
      {"tanh", [](auto& x) { return tanh(x); }},
      {"gelu", [](auto& x) { return gelu(x); }},
      {"isnan", [](auto& x) { return isnan(x); }},
      {"conversion", [](auto& x) { return to(x, f64); }},
      {"number behind", [](auto& x) { return x * 2; }},
      {"number before", [](auto& x) { return 2 - x; }},
      {"itself", [](auto& x) { return x + x; }},
      {"row behind", [=](auto& x) { return x + row; }},
      {"row before", [=](auto& x) { return row / x; }},
      {"expanded before",
       [=](auto& x) {
         return expand(row, {4, 2, 3}) - x;
       }},
      {"row-major behind", [=](auto& x) { return x * block; }},
      {"comparison", [](auto& x) { return x > 1; }},
      {"fmod", [](auto& x) { return fmod(x, 0.3); }},
      {"where", [](auto& x) { return where(x > 1.5, x, 0); }},
      {"clamp", [](auto& x) { return clamp(x, 1.1, 1.6); }},
      {"lerp", [](auto& x) { return lerp(x, 2, 0.25); }},
      {"chain", [](auto& x) { return exp(sqrt(x) - 1) * x; }},
  };
}

}  // namespace

TEST_CASE("the result of an elementwise op has its axes in the order of the operand's") {
  constexpr std::uint64_t seed = 46;
  CAPTURE(seed);
  manual_seed(seed);
  Tensor base = rand({4, 6, 2, 8}) + 1;
  struct Layout {
    const char* name;
    Tensor x;
    Shape strides;  // of the result
  };
  Tensor flat = rand({24}) + 1;
  const Layout layouts[] = {
      {"row-major", reshape(flat, {4, 2, 3}), {6, 3, 1}},
      {"permuted", permute(reshape(flat, {2, 3, 4}), {2, 0, 1}), {1, 12, 4}},
      {"reversed", permute(reshape(flat, {3, 2, 4}), {2, 1, 0}), {1, 4, 8}},
      {"permuted with gaps", permute(slice(slice(select(base, 2, 1), 1, 0, 6, 2), 2, 1, 3), {0, 2, 1}), {6, 1, 2}},
      {"row-major with gaps", slice(slice(select(base, 2, 1), 1, 0, 2), 2, 1, 4), {6, 3, 1}},
  };
  for (const Layout& layout : layouts)
    for (const Case& one : followers()) {
      CAPTURE(layout.name, one.name);
      Tensor y = one.of(layout.x);
      CHECK(y.strides() == layout.strides);
      CHECK(y.is_contiguous() == (layout.strides == Shape{6, 3, 1}));
      Tensor alone = one.of(contiguous(layout.x));
      CHECK(alone.is_contiguous());
      CHECK(allclose(to(y, f64), to(alone, f64), exactly));
      CHECK(contiguous(y).is_contiguous());
    }
  Tensor permuted = layouts[1].x;
  CHECK((layouts[0].x + permuted).is_contiguous());
  CHECK((expand(rand({3}), {4, 2, 3}) + expand(rand({2, 1}), {4, 2, 3})).is_contiguous());
  CHECK((-transpose(rand({1, 5}))).is_contiguous());
  CHECK((-transpose(zeros({0, 5}))).is_contiguous());
  CHECK((slice(transpose(zeros({3, 5})), 0, 0, 0) * 2).is_contiguous());
}

TEST_CASE("gradients with respect to operands of any order are row-major and right") {
  constexpr std::uint64_t seed = 47;
  CAPTURE(seed);
  manual_seed(seed);
  Tensor block = rand({2, 3, 4}, {.dtype = f64}) + 1;
  for (const Case& one : followers()) {
    CAPTURE(one.name);
    if (one.name == "isnan" || one.name == "comparison") continue;
    auto gradient = [&](bool packs) {
      Tape tape;
      Tensor x = copy(block);
      tape.watch(x);
      Tensor seen = permute(x, {2, 0, 1});
      if (packs) seen = contiguous(seen);
      // Three gradients add up, one of them expanded.
      Tensor weights = reshape(arange(24, {.dtype = f64}), {4, 2, 3});
      return tape.gradient(sum(one.of(seen) * weights) + sum(one.of(seen) * seen) + sum(seen), x);
    };
    Tensor found = gradient(false);
    CHECK(found.is_contiguous());
    CHECK(allclose(found, gradient(true), {.relative = 1e-13, .absolute = 0}));
  }
}

TEST_CASE("results of another order are those of single examples in a batch, to the bit") {
  constexpr std::uint64_t seed = 48;
  CAPTURE(seed);
  manual_seed(seed);
  std::vector<Tensor> examples;
  for (int i = 0; i < 5; ++i) examples.push_back(rand({37, 41}));
  auto run = [&](bool immediate) {
    BatchOptions options;
    options.immediate = immediate;
    return batch_map(
        examples,
        [](const Tensor& x) {
          Tensor y = tanh(transpose(x * 2) - 0.5);
          return stack({sum(y), sum(sum(y, 0)), sum(exp(y))});
        },
        options);
  };
  std::vector<Tensor> joined = run(false), single = run(true);
  for (std::size_t i = 0; i < joined.size(); ++i) CHECK(joined[i].to_vector<float>() == single[i].to_vector<float>());
}

}  // namespace reel_test
