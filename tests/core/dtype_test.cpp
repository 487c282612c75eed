#include <reel/reel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

#include "catch.h"

using namespace reel;

TEST_CASE("dtypes meet where PyTorch's do") {
  // Rows and columns: f32 f64 bf16 f16 i32 i64 u8 bool i8 i16. Source: torch.promote_types.
  const DType table[dtype_count][dtype_count] = {
      {f32, f64, f32, f32, f32, f32, f32, f32, f32, f32},        {f64, f64, f64, f64, f64, f64, f64, f64, f64, f64},
      {f32, f64, bf16, f32, bf16, bf16, bf16, bf16, bf16, bf16}, {f32, f64, f32, f16, f16, f16, f16, f16, f16, f16},
      {f32, f64, bf16, f16, i32, i64, i32, i32, i32, i32},       {f32, f64, bf16, f16, i64, i64, i64, i64, i64, i64},
      {f32, f64, bf16, f16, i32, i64, u8, u8, i16, i16},         {f32, f64, bf16, f16, i32, i64, u8, boolean, i8, i16},
      {f32, f64, bf16, f16, i32, i64, i16, i8, i8, i16},         {f32, f64, bf16, f16, i32, i64, i16, i16, i16, i16},
  };
  for (int a = 0; a < dtype_count; ++a)
    for (int b = 0; b < dtype_count; ++b) {
      auto left = static_cast<DType>(a), right = static_cast<DType>(b);
      CAPTURE(name_of(left), name_of(right));
      CHECK(name_of(promote(left, right)) == std::string(name_of(table[a][b])));
    }
}

TEST_CASE("dtypes have names and sizes") {
  struct Row {
    DType dtype;
    std::string name;
    std::size_t bytes;
    bool floating;
  };
  const Row rows[] = {{f32, "f32", 4, true}, {f64, "f64", 8, true},       {bf16, "bf16", 2, true},
                      {f16, "f16", 2, true}, {i32, "i32", 4, false},      {i64, "i64", 8, false},
                      {u8, "u8", 1, false},  {boolean, "bool", 1, false}, {i8, "i8", 1, false},
                      {i16, "i16", 2, false}};
  for (const Row& row : rows) {
    CHECK(name_of(row.dtype) == row.name);
    CHECK(size_of(row.dtype) == row.bytes);
    CHECK(is_floating(row.dtype) == row.floating);
  }
  CHECK(dtype_of<long long>() == i64);
  CHECK(dtype_of<long>() == i64);
  CHECK(dtype_of<short>() == i16);
  CHECK(dtype_of<std::int8_t>() == i8);
}

namespace {

// The parameters of a 16-bit format: fraction bits, smallest normal exponent, largest value.
struct Form {
  int fraction_bits, least_exponent;
  double largest;
};
constexpr Form bf16_form{7, -126, 0x1.fep127}, f16_form{10, -14, 65504};

// Decodes bits by the definition of the format.
double meaning(std::uint16_t bits, const Form& form) {
  int exponent_bits = 15 - form.fraction_bits;
  int fraction = bits & ((1 << form.fraction_bits) - 1);
  int exponent = (bits >> form.fraction_bits) & ((1 << exponent_bits) - 1);
  double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction ? NAN : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, form.least_exponent - form.fraction_bits);
  return sign *
         std::ldexp(fraction + (1 << form.fraction_bits), form.least_exponent - form.fraction_bits + exponent - 1);
}

// Nearest value of the format, ties to even: scaling by powers of two is exact, and nearbyint rounds to even.
double nearest(double x, const Form& form) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent = std::max(std::ilogb(x), form.least_exponent) - form.fraction_bits;
  double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -exponent)), exponent);
  return std::abs(rounded) > form.largest ? std::copysign(HUGE_VAL, x) : rounded;
}

template <class Half>
void check_all_patterns(const Form& form) {
  int wrong = 0;
  for (int pattern = 0; pattern < 65536; ++pattern) {
    Half half;
    half.bits = static_cast<std::uint16_t>(pattern);
    double expected = meaning(half.bits, form);
    auto value = static_cast<double>(static_cast<float>(half));
    Half again(static_cast<float>(half));
    bool right = std::isnan(expected) ? std::isnan(value) && std::isnan(static_cast<float>(again))
                                      : value == expected && again.bits == half.bits;
    wrong += !right;
  }
  CHECK(wrong == 0);
}

template <class Half>
void check_rounding(const Form& form, std::uint32_t seed) {
  int wrong = 0;
  auto check = [&](float x) {
    double expected = nearest(static_cast<double>(x), form);
    auto found = static_cast<double>(static_cast<float>(Half(x)));
    wrong += !(found == expected && std::signbit(found) == std::signbit(expected));
  };
  for (int pattern = 0; pattern < 65535; ++pattern) {
    double low = meaning(static_cast<std::uint16_t>(pattern), form);
    double high = meaning(static_cast<std::uint16_t>(pattern + 1), form);
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    auto middle = static_cast<float>((low + high) / 2);
    for (float x : {middle, std::nextafter(middle, HUGE_VALF), std::nextafter(middle, -HUGE_VALF)}) check(x);
  }
  std::mt19937 random(seed);
  for (int i = 0; i < 1'000'000; ++i)
    if (auto x = std::bit_cast<float>(static_cast<std::uint32_t>(random())); !std::isnan(x)) check(x);
  auto beyond = static_cast<float>(form.largest);
  for (int i = 0; i < 64; ++i) check(beyond * (1 + static_cast<float>(i) * 0x1p-14f));
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("every bf16 and every f16 survives the way to float and back") {
  check_all_patterns<BFloat16>(bf16_form);
  check_all_patterns<Float16>(f16_form);
}

TEST_CASE("float to bf16 and f16 rounds to nearest even") {
  constexpr std::uint32_t seed = 4711;
  CAPTURE(seed);
  check_rounding<BFloat16>(bf16_form, seed);
  check_rounding<Float16>(f16_form, seed);
}

TEST_CASE("f64 and i64 become halves with one rounding, not by way of f32") {
  // Just above a tie: rounded to f32 first, it would be the tie itself and go down to even.
  const double above_tie = 1 + 0x1p-8 + 0x1p-40, below_tie = 1 + 3 * 0x1p-8 - 0x1p-40;
  CHECK(to(tensor({above_tie, -above_tie, below_tie}), bf16).to_vector<BFloat16>()[0].bits ==
        BFloat16(1 + 0x1p-7f).bits);
  CHECK(to(tensor({-above_tie}), bf16).item() == -(1 + 0x1p-7));
  CHECK(to(tensor({below_tie}), bf16).item() == 1 + 0x1p-7);
  CHECK(to(tensor({1 + 0x1p-11 + 0x1p-40}), f16).item() == 1 + 0x1p-10);
  std::int64_t big = (std::int64_t{1} << 40) + (std::int64_t{1} << 32) + 1;
  CHECK(to(tensor({big}), bf16).item() == 0x1p40 + 0x1p33);
  CHECK(to(tensor({1e300, -1e300, 1e-300}), f16).to_vector<Float16>()[0].bits == 0x7c00);
  CHECK(full({}, above_tie, {.dtype = bf16}).item() == 1 + 0x1p-7);
}
