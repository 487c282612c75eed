#include "data/permutation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "catch.h"

using reel::detail::derived_key;
using reel::detail::Permutation;

namespace {

std::vector<std::int64_t> all_of(std::int64_t size, std::uint64_t seed, std::uint64_t stream = 0) {
  Permutation permutation(size, seed, stream);
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < size; ++i) values.push_back(permutation[i]);
  return values;
}

// χ² of counts whose expectations are equal, in standard deviations from its mean.
double deviation(const std::vector<std::int64_t>& counts) {
  double total = 0, square = 0;
  for (std::int64_t count : counts) total += static_cast<double>(count);
  double expected = total / static_cast<double>(counts.size());
  for (std::int64_t count : counts) square += std::pow(static_cast<double>(count) - expected, 2) / expected;
  double freedom = static_cast<double>(counts.size() - 1);
  return (square - freedom) / std::sqrt(2 * freedom);
}

}  // namespace

TEST_CASE("a permutation of any size has each index once") {
  for (std::int64_t size : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 63, 64, 65, 100, 1000, 1023, 1024, 1025, 4096, 12345}) {
    std::vector<std::int64_t> values = all_of(size, 7, 3);
    std::ranges::sort(values);
    bool is_range = true;
    for (std::int64_t i = 0; i < size; ++i) is_range = is_range && values[static_cast<std::size_t>(i)] == i;
    INFO("size " << size);
    CHECK(is_range);
  }
}

TEST_CASE("a permutation of a size near 2^62 stays in its range") {
  constexpr std::int64_t size = (std::int64_t{1} << 62) + 1;
  Permutation permutation(size, 1, 2);
  for (std::int64_t i : {std::int64_t{0}, std::int64_t{1}, size / 2, size - 1}) {
    CHECK(permutation[i] >= 0);
    CHECK(permutation[i] < size);
  }
}

TEST_CASE("permutations of other seeds and epochs differ") {
  CHECK(all_of(100, 1, 0) == all_of(100, 1, 0));
  CHECK(all_of(100, 1, 0) != all_of(100, 2, 0));
  CHECK(all_of(100, 1, 0) != all_of(100, 1, 1));
}

TEST_CASE("all permutations of few items are equally likely") {
  for (std::int64_t size : {3, 4, 5}) {
    std::map<std::vector<std::int64_t>, std::int64_t> seen;
    for (std::uint64_t seed = 0; seed < 40'000; ++seed) ++seen[all_of(size, seed)];
    std::vector<std::int64_t> counts;
    for (const auto& [values, count] : seen) counts.push_back(count);
    INFO("size " << size);
    CHECK(counts.size() == (size == 3 ? 6u : size == 4 ? 24u : 120u));
    CHECK(std::abs(deviation(counts)) < 5);
  }
}

TEST_CASE("each item is at each position equally often, over seeds and over epochs") {
  for (std::int64_t size : {6, 8, 13, 32, 37}) {
    for (bool by_epoch : {false, true}) {
      auto n = static_cast<std::size_t>(size);
      std::vector<std::int64_t> counts(n * n);
      for (std::uint64_t i = 0; i < 8'000; ++i) {
        std::vector<std::int64_t> values = by_epoch ? all_of(size, 5, i) : all_of(size, i, 0);
        for (std::size_t at = 0; at < n; ++at) ++counts[at * n + static_cast<std::size_t>(values[at])];
      }
      INFO("size " << size << (by_epoch ? " over epochs" : " over seeds"));
      CHECK(std::abs(deviation(counts)) < 5);
    }
  }
}

TEST_CASE("two successive positions hold each pair of items equally often") {
  constexpr std::size_t n = 12;
  std::vector<std::int64_t> counts;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> pairs;
  for (std::uint64_t seed = 0; seed < 30'000; ++seed) {
    Permutation permutation(n, seed, 0);
    ++pairs[{permutation[4], permutation[5]}];
  }
  for (const auto& [pair, count] : pairs) counts.push_back(count);
  CHECK(counts.size() == n * (n - 1));
  CHECK(std::abs(deviation(counts)) < 5);
}

TEST_CASE("the order of a large dataset has no trend and no runs") {
  constexpr std::int64_t size = 100'000;
  std::vector<std::int64_t> values = all_of(size, 3);
  double product = 0, square = 0, successive = 0;
  constexpr double mean = (size - 1) / 2.0;
  std::int64_t ascents = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    auto here = static_cast<double>(values[static_cast<std::size_t>(i)]) - mean;
    product += here * (static_cast<double>(i) - mean);
    square += here * here;
    if (i + 1 == size) continue;
    auto next = static_cast<double>(values[static_cast<std::size_t>(i) + 1]) - mean;
    successive += here * next;
    ascents += next > here;
  }
  // A correlation of independent values has a standard deviation of 1 / √n, the count of ascents of √(n / 12).
  CHECK(std::abs(product / square) < 5 / std::sqrt(size));
  CHECK(std::abs(successive / square) < 5 / std::sqrt(size));
  CHECK(std::abs(static_cast<double>(ascents) - size / 2.0) < 5 * std::sqrt(size / 12.0));
}

TEST_CASE("the order and the keys of a seed stay, so that a saved run goes on with its own") {
  CHECK(all_of(10, 1) == std::vector<std::int64_t>{0, 5, 7, 2, 1, 9, 6, 4, 8, 3});
  CHECK(Permutation(std::int64_t{1} << 40, 3, 4)[5] == 970'045'074'123);
  CHECK(derived_key(1, 2, 3) == 0x284567eed5ddafb2);
}

TEST_CASE("the keys of items differ") {
  std::map<std::uint64_t, int> keys;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (std::uint64_t epoch = 0; epoch < 10; ++epoch)
      for (std::uint64_t item = 0; item < 100; ++item) ++keys[derived_key(seed, epoch, item)];
  CHECK(keys.size() == 10'000);
}
