#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "catch.h"
#include "core/philox.h"
#include "cpu/simd/vector/vector_philox.h"

using namespace reel;

namespace {

std::vector<double> values_of(const Tensor& x) { return to(x, f64).to_vector<double>(); }

// Mean of f(x).
template <class F>
double average(const std::vector<double>& values, F f) {
  double sum = 0;
  for (double x : values) sum += f(x);
  return sum / static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("Philox gives the published answers") {
  // Source: Random123, tests/kat_vectors, philox4x32 with 10 rounds.
  struct Row {
    std::uint64_t key, high, low;
    std::uint32_t words[4];
  };
  constexpr std::uint64_t full_word = ~std::uint64_t{0};
  const Row rows[] = {
      {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {full_word, full_word, full_word, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Row& row : rows) {
    detail::PhiloxWords found = detail::philox(row.key, row.high, row.low);
    for (int i = 0; i < 4; ++i) CHECK(found.word[i] == row.words[i]);
  }
}

TEST_CASE("an element depends on the seed, the call and its number alone") {
  Generator generator(123);
  generator.set_calls(7);
  Tensor drawn = rand({6, 4}, {.generator = &generator});
  CHECK(generator.calls() == 8);
  std::vector<float> values = drawn.to_vector<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    CHECK(values[i] == static_cast<float>(detail::philox(123, 7, i).word[0] >> 8) * 0x1p-24f);
  generator.set_calls(7);
  CHECK(rand({24}, {.generator = &generator}).to_vector<float>() == values);
}

TEST_CASE("elements are drawn from the words of their numbers, however many there are") {
  // Numbers whose upper words matter, too.
  constexpr std::uint64_t seed = 0x9876543210fedcba, call = std::uint64_t{5} << 32 | 7;
  constexpr double probability = 0.375;
  constexpr auto least = static_cast<std::uint32_t>(probability * 0x1p32);
  for (std::int64_t count : {1, 3, 4, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 130, 1000}) {
    CAPTURE(count);
    auto next_call = [&] {
      Generator generator(seed);
      generator.set_calls(call);
      return generator;
    };
    Generator of_single = next_call(), of_double = next_call(), of_flags = next_call();
    std::vector<float> single = rand({count}, {.generator = &of_single}).to_vector<float>();
    std::vector<double> wide = rand({count}, {.dtype = f64, .generator = &of_double}).to_vector<double>();
    Tensor flags = bernoulli(full({count}, probability), {.generator = &of_flags});
    std::vector<double> chosen = values_of(flags);
    std::vector<std::vector<double>> kept;
    Tensor x = arange(count, {.dtype = f32}) + 1;
    for (DType dtype : {f32, f64, bf16, f16}) {
      Generator of_dropout = next_call();
      kept.push_back(values_of(dropout(to(x, dtype), {.probability = probability, .generator = &of_dropout})));
    }
    for (std::size_t i = 0; i < single.size(); ++i) {
      CAPTURE(i);
      detail::PhiloxWords w = detail::philox(seed, call, i);
      CHECK(single[i] == static_cast<float>(w.word[0] >> 8) * 0x1p-24f);
      CHECK(wide[i] == detail::unit_double(w.word[0], w.word[1]));
      CHECK((chosen[i] != 0) == (w.word[0] < least));
      for (const std::vector<double>& values : kept) CHECK((values[i] != 0) == (w.word[0] >= least));
      if (w.word[0] >= least) CHECK(kept[1][i] == static_cast<double>(i + 1) * (1 / (1 - probability)));
    }
  }
}

TEST_CASE("a block of counters carries into their upper word") {
  constexpr std::uint64_t key = 12, high = 34, first = (std::uint64_t{7} << 32) - 10;
  detail::PhiloxBlock block;
  block.compute<4>(key, high, first, detail::PhiloxBlock::size);
  for (std::int64_t i = 0; i < detail::PhiloxBlock::size; ++i)
    for (int k = 0; k < 4; ++k)
      CHECK(block.word(k)[i] == detail::philox(key, high, first + static_cast<std::uint64_t>(i)).word[k]);
}

TEST_CASE("a seed repeats every draw") {
  auto draws = [] {
    Tensor x = ones({50});
    return concat({rand({20}), randn({20}), dropout(x)}).to_vector<float>();
  };
  manual_seed(5);
  std::vector<float> first = draws(), next = draws();
  manual_seed(5);
  CHECK(draws() == first);
  CHECK(draws() == next);
  CHECK(first != next);
  manual_seed(6);
  CHECK(draws() != first);
}

TEST_CASE("uniform numbers are uniform on [0, 1) in every floating dtype") {
  constexpr std::uint64_t seed = 11;
  CAPTURE(seed);
  manual_seed(seed);
  constexpr int count = 200'000;
  for (DType dtype : {f32, f64, bf16, f16}) {
    CAPTURE(name_of(dtype));
    std::vector<double> u = values_of(rand({count}, {.dtype = dtype}));
    CHECK(*std::min_element(u.begin(), u.end()) >= 0);
    CHECK(*std::max_element(u.begin(), u.end()) < 1);
    // Five standard errors plus the rounding of halves, at most 2^-9.
    double rounding = dtype == bf16 ? 0x1p-9 : dtype == f16 ? 0x1p-12 : 0;
    double error = 5 / std::sqrt(12.0 * count);
    CHECK(std::abs(average(u, [](double x) { return x; }) - 0.5) < error + rounding);
    CHECK(std::abs(average(u, [](double x) { return x * x; }) - 1.0 / 3) < error + 2 * rounding);
    for (int tenth = 1; tenth < 10; ++tenth) {
      double below = average(u, [&](double x) { return x < tenth / 10.0; });
      CHECK(std::abs(below - tenth / 10.0) < 5 * 0.5 / std::sqrt(count) + 2 * rounding);
    }
  }
}

TEST_CASE("normal numbers have the moments of the normal distribution") {
  constexpr std::uint64_t seed = 12;
  CAPTURE(seed);
  manual_seed(seed);
  constexpr int count = 200'000;
  for (DType dtype : {f32, f64, bf16, f16}) {
    CAPTURE(name_of(dtype));
    std::vector<double> z = values_of(randn({count}, {.dtype = dtype}));
    // The variances of z, z², z³ and z⁴ are 1, 2, 15 and 96: five standard errors, and the rounding of the
    // halves: at most 2^-9 of a number, so n times that of its n-th power, whose mean is at most 3.
    double rounding = dtype == bf16 ? 0x1p-9 : dtype == f16 ? 0x1p-12 : 0;
    const double moments[] = {0, 1, 0, 3}, variances[] = {1, 2, 15, 96};
    for (int n = 1; n <= 4; ++n) {
      CAPTURE(n);
      double moment = average(z, [&](double x) { return std::pow(x, n); });
      CHECK(std::abs(moment - moments[n - 1]) < 5 * std::sqrt(variances[n - 1] / count) + 3 * n * rounding);
    }
    double within_one = average(z, [](double x) { return std::abs(x) < 1; });
    CHECK(std::abs(within_one - std::erf(std::sqrt(0.5))) < 5 * 0.5 / std::sqrt(count) + 2 * rounding);
  }
}

TEST_CASE("normal numbers are those of the words, and distributed normally up to the tails") {
  constexpr std::uint64_t seed = 0x123456789, call = 3;
  CAPTURE(seed);
  constexpr std::int64_t count = 1'000'003;
  for (DType dtype : {f32, f64}) {
    CAPTURE(name_of(dtype));
    Generator generator(seed);
    generator.set_calls(call);
    std::vector<double> z = values_of(randn({count}, {.dtype = dtype, .generator = &generator}));
    double worst = 0;
    for (std::size_t i = 0; i < z.size(); ++i) {
      detail::PhiloxWords w = detail::philox(seed, call, i);
      bool wide = dtype == f64;
      double u = wide ? detail::unit_double(w.word[0], w.word[1]) : double(w.word[0] >> 8) * 0x1p-24;
      double angle = wide ? detail::unit_double(w.word[2], w.word[3]) : double(w.word[1] >> 8) * 0x1p-24;
      // The cosine of an angle near a quarter of a turn is computed from its distance to it.
      double from_quarter = std::abs(angle - 0.5) - 0.25;
      double expected = std::sqrt(-2 * std::log1p(-u)) * std::sin(6.283185307179586 * from_quarter);
      worst = std::max(worst, std::abs(z[i] - expected) / std::max(std::abs(expected), 1e-12));
    }
    CHECK(worst < 4 * (dtype == f64 ? 0x1p-52 : 0x1p-23));
    for (double limit : {1.0, 2.0, 3.0, 4.0}) {
      double p = std::erfc(limit / std::sqrt(2.0)), beyond = average(z, [&](double x) { return std::abs(x) > limit; });
      CHECK(std::abs(beyond - p) < 5 * std::sqrt(p / count));
    }
    // Kolmogorov and Smirnov: the largest distance from the distribution function exceeds 1.95 / √n once in a thousand.
    std::sort(z.begin(), z.end());
    double distance = 0;
    for (std::size_t i = 0; i < z.size(); ++i) {
      double below = std::erfc(-z[i] / std::sqrt(2.0)) / 2;
      distance = std::max({distance, below - double(i) / count, double(i + 1) / count - below});
    }
    CHECK(distance < 1.95 / std::sqrt(count));
  }
}

TEST_CASE("a permutation is the order of the keys, whatever the number of buckets") {
  constexpr std::uint64_t seed = 77;
  CAPTURE(seed);
  for (std::int64_t count : {0, 1, 2, 3, 100, 4095, 4096, 4097, 8192, 100'003}) {
    CAPTURE(count);
    Generator generator(seed);
    std::vector<std::pair<std::uint64_t, std::int64_t>> keys;
    for (std::int64_t i = 0; i < count; ++i) {
      detail::PhiloxWords w = detail::philox(seed, 0, static_cast<std::uint64_t>(i));
      keys.emplace_back(std::uint64_t{w.word[0]} << 32 | w.word[1], i);
    }
    std::sort(keys.begin(), keys.end());
    std::vector<std::int64_t> expected;
    for (const auto& key : keys) expected.push_back(key.second);
    CHECK(randperm(count, {.generator = &generator}).to_vector<std::int64_t>() == expected);
  }
}

TEST_CASE("dropout drops with its probability and scales what it keeps") {
  constexpr std::uint64_t seed = 13;
  CAPTURE(seed);
  constexpr int count = 100'000;
  for (double probability : {0.0, 0.1, 0.5, 0.9, 1.0}) {
    CAPTURE(probability);
    manual_seed(seed);
    std::vector<float> y = dropout(full({count}, 3.f), {.probability = probability}).to_vector<float>();
    auto dropped = static_cast<double>(std::count(y.begin(), y.end(), 0.f));
    CHECK(std::abs(dropped - probability * count) <= 5 * std::sqrt(probability * (1 - probability) * count));
    auto scale = static_cast<float>(1 / (1 - probability));
    CHECK(std::all_of(y.begin(), y.end(), [&](float v) { return v == 0 || v == 3 * scale; }));
  }
}

TEST_CASE("the same call drops the same elements whatever the strides and the dtype") {
  Tensor x = reshape(arange(60, {.dtype = f32}), {3, 4, 5}) + 1;
  Tensor permuted = permute(contiguous(permute(x, {2, 0, 1})), {1, 2, 0});
  Tensor backwards = slice(contiguous(slice(x, 2, -1, std::numeric_limits<std::int64_t>::min(), -1)), 2, -1,
                           std::numeric_limits<std::int64_t>::min(), -1);
  auto dropped = [](const Tensor& tensor) {
    Generator generator(3);
    return dropout(tensor, {.probability = 0.4, .generator = &generator});
  };
  std::vector<float> expected = dropped(x).to_vector<float>();
  CHECK(dropped(permuted).to_vector<float>() == expected);
  CHECK(dropped(backwards).to_vector<float>() == expected);
  std::vector<double> wide = dropped(to(x, f64)).to_vector<double>();
  for (std::size_t i = 0; i < wide.size(); ++i) CHECK((wide[i] == 0) == (expected[i] == 0));
}

TEST_CASE("random functions refuse what they cannot draw") {
  using reel_test::contains;
  using reel_test::error_of;
  CHECK_THAT(error_of<DTypeError>([] { randn({2}, {.dtype = i32}); }),
             contains("randn: draws floating numbers, not i32"));
  CHECK_THAT(error_of<Error>([] { dropout(ones({2}), {.probability = 1.5}); }),
             contains("the probability 1.5 lies outside"));
  CHECK_THROWS_AS(dropout(ones({2}), {.probability = NAN}), Error);
  CHECK_THROWS_AS(dropout(arange(3)), DTypeError);
}
