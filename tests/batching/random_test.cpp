#include <reel/batching.h>
#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "catch.h"
#include "checks.h"

// Random numbers of examples.

using namespace reel;
using namespace reel_test;

namespace {

std::vector<double> values(const std::vector<Tensor>& tensors) {
  std::vector<double> all;
  for (const Tensor& one : tensors)
    for (double x : to(one, f64).to_vector<double>()) all.push_back(x);
  return all;
}

// Draws of several kinds, and of a number that depends on them.
Tensor drawn(int i) {
  Tensor x = randn({1, 4}) + 0.1 * i, mask = dropout(ones({1, 4}), {.probability = 0.5});
  while (rand({}).item() < 0.6) x = x * 1.5 + to(randint(0, 5, {1, 4}), f32);
  auto [a, b] = both([&] { return randn({1, 4}) + rand({1, 4}); }, [&] { return dropout(x, {.probability = 0.3}); });
  return concat({x, mask, a, b, randn({1, 4})}, 0);
}

const std::vector<BatchOptions>& modes() {
  static const std::vector<BatchOptions> all{{.immediate = true}, {.in_flight = 1}, {.in_flight = 3}, {}};
  return all;
}

}  // namespace

TEST_CASE("an example draws the same random numbers, however many are in flight") {
  std::vector<double> expected, expected_after;
  for (const BatchOptions& options : modes()) {
    CAPTURE(options.in_flight, options.immediate);
    manual_seed(1);
    std::vector<double> found = values(batch_map(numbers(9), drawn, options)), after = values({randn({4})});
    if (expected.empty()) {
      expected = found;
      expected_after = after;
    }
    // The numbers are equal; sums of them may be rounded differently.
    REQUIRE(found.size() == expected.size());
    bool equal = true;
    for (std::size_t i = 0; i < found.size(); ++i) equal &= std::abs(found[i] - expected[i]) <= 1e-4;
    CHECK(equal);
    CHECK(after == expected_after);
  }
}

TEST_CASE("an example's random numbers do not depend on how many examples there are") {
  manual_seed(2);
  std::vector<double> few = values(batch_map(numbers(2), [](int) { return randn({6}); }));
  manual_seed(2);
  std::vector<double> many = values(batch_map(numbers(20), [](int) { return randn({6}); }));
  CHECK(std::vector<double>(many.begin(), many.begin() + 12) == few);
  manual_seed(2);
  std::vector<double> one = values(batch_map(numbers(1), [](int) { return randn({6}); }));
  CHECK(std::vector<double>(many.begin(), many.begin() + 6) == one);
}

TEST_CASE("examples, siblings and batches differ in their random numbers, and a seed repeats them") {
  for (const BatchOptions& options : modes()) {
    CAPTURE(options.in_flight, options.immediate);
    auto run = [&] {
      return batch_map(
          numbers(3),
          [](int) {
            Tensor before = randn({4});
            auto [a, b] = both([] { return randn({4}); }, [] { return randn({4}); });
            return stack({before, a, b, randn({4})});
          },
          options);
    };
    manual_seed(3);
    std::vector<Tensor> first = run(), second = run();
    std::vector<std::vector<float>> rows;
    for (const std::vector<Tensor>& batch : {first, second})
      for (const Tensor& example : batch)
        for (int k = 0; k < 4; ++k) rows.push_back(copy(example(k)).to_vector<float>());
    rows.push_back(randn({4}).to_vector<float>());
    bool different = true;
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::size_t k = 0; k < i; ++k) different &= rows[i] != rows[k];
    CHECK(different);
    manual_seed(3);
    CHECK(values(run()) == values(first));
    CHECK(values(run()) == values(second));
    manual_seed(4);
    CHECK(values(run()) != values(first));
  }
}

TEST_CASE("random numbers of a batch_map within another are the same, however many are in flight") {
  std::vector<double> expected;
  for (const BatchOptions& options : modes()) {
    CAPTURE(options.in_flight, options.immediate);
    manual_seed(5);
    std::vector<Tensor> made = batch_map(
        numbers(4),
        [&](int i) {
          Tensor x = randn({3});
          std::vector<Tensor> inner = batch_map(
              numbers(i), [](int) { return randn({3}); }, options);
          inner.push_back(x);
          inner.push_back(randn({3}));
          return concat(inner, 0);
        },
        options);
    std::vector<double> found = values(made);
    if (expected.empty()) expected = found;
    CHECK(found == expected);
  }
}

TEST_CASE("a checkpoint within an example repeats that example's random numbers in the backward pass") {
  manual_seed(6);
  Tensor w = draw({4, 4}).requires_grad(), x = draw({1, 4});
  auto gradient = [&](bool checkpointed, const BatchOptions& options) {
    manual_seed(7);
    Tape tape;
    std::vector<Tensor> made = batch_map(
        numbers(6),
        [&](int i) {
          auto f = [&w](const Tensor& z) { return tanh(matmul(dropout(matmul(z, w), {.probability = 0.5}), w)); };
          Tensor z = x * (1.0 + i);
          return checkpointed ? checkpoint(f, z) : f(z);
        },
        options);
    randn({5});
    Tensor all = concat(made, 0);
    return std::vector<Tensor>{all, tape.gradient(sum(all), w)};
  };
  std::vector<Tensor> expected = gradient(false, {.immediate = true});
  for (const BatchOptions& options : modes())
    for (bool checkpointed : {false, true}) {
      CAPTURE(options.in_flight, options.immediate, checkpointed);
      reel_test::check_close(gradient(checkpointed, options), expected);
    }
}

TEST_CASE("after an exception of an example the thread draws on from its own stream") {
  for (const BatchOptions& options : modes()) {
    CAPTURE(options.in_flight, options.immediate);
    manual_seed(8);
    std::vector<Tensor> quiet = batch_map(
        numbers(4), [](int) { return randn({2}); }, options);
    std::vector<double> expected = values({randn({4})});
    manual_seed(8);
    CHECK_THROWS_AS(batch_map(
                        numbers(4),
                        [](int i) {
                          Tensor x = randn({2}) + randn({2});
                          if (i == 1) throw i;
                          return x;
                        },
                        options),
                    int);
    CHECK(values({randn({4})}) == expected);
  }
}

TEST_CASE("siblings of very many examples draw the same random numbers, also where one of them throws") {
  for (bool fails : {false, true}) {
    CAPTURE(fails);
    auto run = [&](const BatchOptions& options) {
      manual_seed(9);
      return values(batch_map(
          numbers(300),
          [&](int i) {
            Tensor x = tanh(full({1, 2}, 0.01 * i));
            try {
              auto [a, b] = both(
                  [] {
                    return randn({1, 2});
                  },
                  [&] {
                    Tensor drawn = randn({1, 2});
                    if (fails) throw i;
                    return drawn;
                  });
              x = x + a + b;
            } catch (int) {
              x = x * 2;
            }
            return x + randn({1, 2});
          },
          options));
    };
    std::vector<double> expected = run({.immediate = true}), found = run({.in_flight = 300});
    REQUIRE(found.size() == expected.size());
    double apart = 0;
    for (std::size_t i = 0; i < found.size(); ++i) apart = std::max(apart, std::abs(found[i] - expected[i]));
    CHECK(apart <= 1e-5);
  }
}
