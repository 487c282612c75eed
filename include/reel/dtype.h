#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace reel {

/// The type of the elements of a tensor. Arithmetic on `bf16` and `f16` accumulates in f32 and rounds once per op; that on
/// integers wraps around.
enum class DType : std::uint8_t { f32, f64, bf16, f16, i32, i64, u8, boolean, i8, i16 };
using enum DType;

/// The number of dtypes.
inline constexpr int dtype_count = 10;

/// bfloat16: 1 sign, 8 exponent, 7 fraction bits. Conversion from float rounds to nearest even.
struct BFloat16 {
  std::uint16_t bits = 0;  ///< the sixteen bits, sign first
  /// Zero.
  BFloat16() = default;
  /// Rounds to the nearest value, ties to even.
  BFloat16(float value);
  /// The value as float, which is exact.
  operator float() const;
};

/// IEEE 754 binary16. Conversion from float rounds to nearest even.
struct Float16 {
  std::uint16_t bits = 0;  ///< the sixteen bits, sign first
  /// Zero.
  Float16() = default;
  /// Rounds to the nearest value, ties to even; beyond ±65504 to ±∞.
  Float16(float value);
  /// The value as float, which is exact.
  operator float() const;
};

/// Bytes per element of a dtype.
constexpr std::size_t size_of(DType dtype) {
  // One hexadecimal digit each, the last for f32.
  return 0x2111842284ull >> (4 * static_cast<unsigned>(dtype)) & 15;
}

/// The name of a dtype: "f32", "f64", "bf16", "f16", "i32", "i64", "u8", "bool", "i8", "i16".
constexpr const char* name_of(DType dtype) {
  constexpr const char* names[] = {"f32", "f64", "bf16", "f16", "i32", "i64", "u8", "bool", "i8", "i16"};
  return names[static_cast<int>(dtype)];
}

/// True for f32, f64, bf16 and f16.
constexpr bool is_floating(DType dtype) { return dtype <= DType::f16; }

/// The dtype in which two operands of the given dtypes are combined: bool < integers < floating; of two integers
/// the larger, but u8 with i8 gives i16; f16 with bf16 gives f32.
/// Source: PyTorch's promote_types.
DType promote(DType a, DType b);

/// The dtype whose elements have the C++ type T.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, BFloat16>) return DType::bf16;
  if constexpr (std::is_same_v<T, Float16>) return DType::f16;
  if constexpr (std::is_same_v<T, bool>) return DType::boolean;
  if constexpr (std::is_same_v<T, unsigned char>) return DType::u8;
  if constexpr (std::is_same_v<T, signed char>) return DType::i8;
  if constexpr (std::is_same_v<T, short>) return DType::i16;
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 4) return DType::i32;
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 8) return DType::i64;
}

/// True for the C++ types that tensors hold.
template <class T>
inline constexpr bool is_element_v =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, BFloat16> ||
    std::is_same_v<T, Float16> || std::is_same_v<T, bool> || std::is_same_v<T, unsigned char> ||
    std::is_same_v<T, signed char> || std::is_same_v<T, short> ||
    (std::is_integral_v<T> && std::is_signed_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));

}  // namespace reel
