#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>

namespace reel {

/// The type of the elements of a tensor. Arithmetic on `bf16` and `f16` accumulates in f32 and rounds once per op; that on
/// integers wraps around.
enum class DType : std::uint8_t { f32, f64, bf16, f16, i32, i64, u8, boolean, i8, i16 };
using enum DType;

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

namespace detail {

/// A list of C++ types.
template <class... T>
struct TypeList {
  static constexpr int count = sizeof...(T);
};

/// The C++ types of elements, in the order of DType.
using ElementTypes = TypeList<float, double, BFloat16, Float16, std::int32_t, std::int64_t, std::uint8_t, bool,
                              std::int8_t, std::int16_t>;

/// The sizes of some types, one hexadecimal digit each, the last for the first type.
template <class... T>
constexpr std::uint64_t sizes_of(TypeList<T...>) {
  std::uint64_t sizes = 0;
  int place = 0;
  ((sizes |= std::uint64_t{sizeof(T)} << 4 * place++), ...);
  return sizes;
}

/// The place of T in a list of types; the list's length if it is not there.
template <class T, class... Types>
constexpr int place_of(TypeList<Types...>) {
  constexpr bool is_it[] = {std::is_same_v<T, Types>...};
  int place = 0;
  while (place < TypeList<Types...>::count && !is_it[place]) ++place;
  return place;
}

/// T; of signed integers of 4 or 8 bytes, which have several names, the one in ElementTypes.
template <class T>
using ElementTypeOf = std::conditional_t<
    std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 4, std::int32_t,
    std::conditional_t<std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 8, std::int64_t, T>>;

}  // namespace detail

/// The number of dtypes.
inline constexpr int dtype_count = detail::ElementTypes::count;

/// Bytes per element of a dtype.
constexpr std::size_t size_of(DType dtype) {
  constexpr std::uint64_t sizes = detail::sizes_of(detail::ElementTypes());
  return sizes >> (4 * static_cast<unsigned>(dtype)) & 15;
}

/// The name of a dtype: "f32", "f64", "bf16", "f16", "i32", "i64", "u8", "bool", "i8", "i16".
constexpr const char* name_of(DType dtype) {
  constexpr const char* names[] = {"f32", "f64", "bf16", "f16", "i32", "i64", "u8", "bool", "i8", "i16"};
  static_assert(std::size(names) == dtype_count);
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
  return static_cast<DType>(detail::place_of<detail::ElementTypeOf<T>>(detail::ElementTypes()));
}

/// True for the C++ types that tensors hold.
template <class T>
inline constexpr bool is_element_v = detail::place_of<detail::ElementTypeOf<T>>(detail::ElementTypes()) < dtype_count;

}  // namespace reel
