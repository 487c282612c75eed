#include "../../lib/core/convert.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "catch.h"

using namespace reel::detail;

namespace {

// The definition of a conversion, in a type that holds f64 and i64 exactly.
float odd_of(long double x) {
  auto nearest = static_cast<float>(x);
  if (static_cast<long double>(nearest) == x || !std::isfinite(nearest)) return nearest;
  float below = static_cast<long double>(nearest) < x ? nearest : std::nextafter(nearest, -HUGE_VALF);
  float above = std::nextafter(below, HUGE_VALF);
  return std::bit_cast<std::uint32_t>(below) & 1 ? below : above;
}

template <class T>
int wrong_of(T x) {
  return std::bit_cast<std::uint32_t>(rounded_to_odd(x)) != std::bit_cast<std::uint32_t>(odd_of(x));
}

}  // namespace

TEST_CASE("f64 and i64 become the float with an odd last place that is next to them, or the float that they are") {
  static_assert(std::numeric_limits<long double>::digits >= 64);
  std::mt19937_64 random(4711);
  int wrong = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::uint64_t bits = random();
    if (auto x = std::bit_cast<double>(bits); !std::isnan(x)) wrong += wrong_of(x);
    // In the range of f32, and near its ends.
    auto x = std::ldexp(static_cast<double>(bits >> 11) * 0x1p-52 - 1, static_cast<int>(random() % 290) - 155);
    wrong += wrong_of(x) + wrong_of(static_cast<double>(static_cast<float>(x)));
    wrong += wrong_of(static_cast<std::int64_t>(bits) >> static_cast<int>(random() % 64));
  }
  for (double x : {0.0, -0.0, 1.0, HUGE_VAL, -HUGE_VAL, 0x1p-149, 0x1p-150, 0x1.8p-150, 0x1.fffffe8p127, 1e300})
    wrong += wrong_of(x);
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  for (std::int64_t x : {std::int64_t{0}, std::int64_t{-1}, least, least + 1, -(least + 1)}) wrong += wrong_of(x);
  CHECK(wrong == 0);
}
