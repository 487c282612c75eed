#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include <reel/dtype.h>

namespace reel::detail {

/// The kinds of numbers, with the codes of DLPack. A kind and a size are a dtype: so files and other libraries name them.
enum class NumberKind : std::uint8_t {
  signed_integer = 0,
  unsigned_integer = 1,
  floating = 2,
  bfloat = 4,
  boolean = 6
};

template <class T>
constexpr NumberKind kind_of_type() {
  if constexpr (std::is_same_v<T, bool>) return NumberKind::boolean;
  if constexpr (std::is_same_v<T, BFloat16>) return NumberKind::bfloat;
  if constexpr (!std::is_integral_v<T>) return NumberKind::floating;
  return std::is_signed_v<T> ? NumberKind::signed_integer : NumberKind::unsigned_integer;
}

template <class... T>
constexpr NumberKind kind_in(TypeList<T...>, DType dtype) {
  constexpr NumberKind kinds[] = {kind_of_type<T>()...};
  return kinds[static_cast<int>(dtype)];
}

/// The kind of a dtype's numbers.
constexpr NumberKind kind_of(DType dtype) { return kind_in(ElementTypes(), dtype); }

/// The dtype of a kind of numbers with a size in bytes.
constexpr std::optional<DType> dtype_of(NumberKind kind, std::size_t bytes) {
  for (int i = 0; i < dtype_count; ++i)
    if (auto dtype = static_cast<DType>(i); kind_of(dtype) == kind && size_of(dtype) == bytes) return dtype;
  return {};
}

}  // namespace reel::detail
