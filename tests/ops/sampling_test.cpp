#include <reel/reel.h>

#include <cmath>
#include <limits>
#include <set>

#include "catch.h"
#include "ops/bad_input.h"
#include "ops/numbers.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr std::uint64_t seed = 5;

}  // namespace

TEST_CASE("variational dropout drops the same elements at every step") {
  CAPTURE(seed);
  Generator generator(seed);
  Tensor y = variational_dropout(ones({50, 40, 30}), {.probability = 0.25, .generator = &generator});
  for (std::int64_t step : {1, 7, 49}) CHECK(same_bits(contiguous(select(y, 0, step)), contiguous(select(y, 0, 0))));
  // 1200 elements; three standard deviations.
  double kept = mean(to(select(y, 0, 0) != 0, f64)).item();
  CHECK(std::abs(kept - 0.75) < 3 * std::sqrt(0.25 * 0.75 / 1200));
  Tensor infinite = full({3, 4}, std::numeric_limits<double>::infinity());
  CHECK(values_of(variational_dropout(infinite, {.probability = 1})) == std::vector<double>(12, 0));
}

TEST_CASE("alpha dropout keeps mean 0 and variance 1") {
  CAPTURE(seed);
  Generator generator(seed);
  for (double probability : {0.1, 0.5, 0.9}) {
    Tensor x = randn({200000}, {.dtype = f64, .generator = &generator});
    Tensor y = alpha_dropout(x, {.probability = probability, .generator = &generator});
    // Some four standard deviations.
    CHECK(std::abs(mean(y).item()) < 0.01);
    CHECK(mean(square(y)).item() == Approx(1).epsilon(0.02));
  }
}

TEST_CASE("gumbel_softmax draws classes with the probabilities of softmax") {
  CAPTURE(seed);
  Generator generator(seed);
  Tensor logits = tensor({0.5, -1.0, 1.5, 0.0}), expected = softmax(logits);
  Tensor drawn =
      gumbel_softmax(expand(logits, {40000, 4}), {.temperature = 0.7, .hard = true, .generator = &generator});
  std::vector<double> p = values_of(expected), found = values_of(mean(drawn, {0}));
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(found[i] - p[i]) < 4 * std::sqrt(p[i] * (1 - p[i]) / 40000));
  std::set<double> seen;
  for (double value : values_of(drawn)) seen.insert(value);
  CHECK(seen == std::set<double>{0, 1});
}

TEST_CASE("hard gumbel_softmax has the gradient of the soft one") {
  Tensor x = tensor({{0.5, -1.0, 1.5}, {0.0, 0.2, 0.1}}), d = tensor({{1.0, 2.0, 3.0}, {-1.0, 0.5, 2.0}});
  for (int axis : {0, 1}) {
    auto gradient = [&](bool hard) {
      Generator generator(seed);
      Tape tape;
      tape.watch(x);
      Tensor y = gumbel_softmax(x, {.temperature = 0.5, .hard = hard, .axis = axis, .generator = &generator});
      return tape.gradient(y, x, {.seed = d});
    };
    CHECK(same_bits(gradient(true), gradient(false)));
  }
}

TEST_CASE("multinomial draws each class as often as its probability says") {
  CAPTURE(seed);
  Generator generator(seed);
  Tensor weights = tensor({1.0, 0.0, 5.0, 2.0, 0.0});
  std::vector<double> p{0.125, 0, 0.625, 0.25, 0};
  Tensor many = multinomial(weights, 40000, {.replacement = true, .generator = &generator});
  Tensor first = select(multinomial(expand(weights, {40000, 5}), 2, {.generator = &generator}), 1, 0);
  for (const Tensor& drawn : {many, first}) {
    std::vector<double> count(5);
    for (double c : values_of(drawn)) count[static_cast<std::size_t>(c)] += 1.0 / 40000;
    for (std::size_t c = 0; c < 5; ++c) CHECK(std::abs(count[c] - p[c]) <= 4 * std::sqrt(p[c] * (1 - p[c]) / 40000));
  }
}

TEST_CASE("multinomial without replacement draws every class above 0 once") {
  Tensor weights = tensor({{1e-300, 0.0, 1e300}, {1.0, 1e-320, 0.0}});
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<double> drawn = values_of(multinomial(weights, 2));
    CHECK(std::set<double>(drawn.begin(), drawn.begin() + 2) == std::set<double>{0, 2});
    CHECK(std::set<double>(drawn.begin() + 2, drawn.end()) == std::set<double>{0, 1});
  }
  Tensor largest = full({4}, std::numeric_limits<double>::max(), {.dtype = f64});
  CHECK(multinomial(largest, 9, {.replacement = true}).shape() == Shape{9});
}

TEST_CASE("random ops of networks say what they cannot do") {
  Tensor u, ints = tensor({{1, 2}, {3, 4}}), x = ones({2, 3});
  all_fail<Error>({
      Bad("variational_dropout: an operand is an undefined tensor", [&] { variational_dropout(u); }),
      Bad("alpha_dropout: an operand is an undefined tensor", [&] { alpha_dropout(u); }),
      Bad("gumbel_softmax: an operand is an undefined tensor", [&] { gumbel_softmax(u); }),
      Bad("multinomial: an operand is an undefined tensor", [&] { multinomial(u, 1); }),
      Bad("variational_dropout: the probability 1.5 lies outside [0, 1]",
          [&] { variational_dropout(x, {.probability = 1.5}); }),
      Bad("alpha_dropout: the probability nan lies outside [0, 1]",
          [&] { alpha_dropout(x, {.probability = std::nan("")}); }),
      Bad("gumbel_softmax: the temperature is 0, not above 0", [&] { gumbel_softmax(x, {.temperature = 0}); }),
      Bad("multinomial: row 1 has the probability -1, which is not a finite number from 0 on",
          [&] {
            multinomial(tensor({{1.0, 2.0}, {-1.0, 2.0}}), 1);
          }),
      Bad("multinomial: row 0 has the probability nan, which is not a finite number from 0 on",
          [&] {
            multinomial(tensor({std::nan(""), 2.0}), 1);
          }),
      Bad("multinomial: row 0 has 1 classes above 0, too few to draw 2 without replacement",
          [&] {
            multinomial(tensor({0.0, 2.0}), 2);
          }),
      Bad("multinomial: row 0 has 0 classes above 0, too few to draw 2",
          [&] {
            multinomial(tensor({0.0, 0.0}), 2, {.replacement = true});
          }),
  });
  all_fail<DTypeError>({
      Bad("variational_dropout: takes a floating tensor, not (2, 2) i32", [&] { variational_dropout(ints); }),
      Bad("alpha_dropout: takes a floating tensor, not (2, 2) i32", [&] { alpha_dropout(ints); }),
      Bad("gumbel_softmax: takes a floating tensor, not (2, 2) i32", [&] { gumbel_softmax(ints); }),
      Bad("multinomial: takes a floating tensor, not (2, 2) i32", [&] { multinomial(ints, 1); }),
  });
  all_fail<ShapeError>({
      Bad("variational_dropout: axis 2 does not exist in (2, 3) f32", [&] { variational_dropout(x, {.axis = 2}); }),
      Bad("gumbel_softmax: axis 2 does not exist in (2, 3) f32", [&] { gumbel_softmax(x, {.axis = 2}); }),
      Bad("multinomial: takes probabilities (C) or (N, C), not () f32", [&] { multinomial(ones({}), 1); }),
      Bad("multinomial: cannot draw -1 classes", [&] { multinomial(x, -1); }),
  });
}

}  // namespace reel_test
