#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include <reel/dtype.h>

#include "target.h"

namespace reel::detail {

/// The kinds of numbers, with the codes of DLPack. A kind and a size are a dtype: so files and other libraries name them.
enum class NumberKind : std::uint8_t { signed_integer, unsigned_integer, floating, bfloat = 4, boolean = 6 };

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
constexpr NumberKind number_kind(DType dtype) { return kind_in(ElementTypes(), dtype); }

/// The dtype of a kind of numbers with a size in bytes.
constexpr std::optional<DType> find_dtype(NumberKind kind, std::size_t bytes) {
  for (int i = 0; i < dtype_count; ++i)
    if (auto dtype = static_cast<DType>(i); number_kind(dtype) == kind && size_of(dtype) == bytes) return dtype;
  return {};
}

}  // namespace reel::detail

namespace reel::detail::inline REEL_TARGET {

template <class... A, class... B>
TypeList<A..., B...> operator+(TypeList<A...>, TypeList<B...>);
/// True for integers, bool not among them.
template <class T>
inline constexpr bool is_integer_v = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <class List>
struct IntegersOf;
template <class... T>
struct IntegersOf<TypeList<T...>> {
  using Types = decltype((TypeList<>() + ... + std::conditional_t<is_integer_v<T>, TypeList<T>, TypeList<>>()));
};
/// The types of the elements of integer dtypes, bool not among them.
using IntegerTypes = IntegersOf<ElementTypes>::Types;

/// Calls f(std::type_identity<T>()) with the element type T of a floating dtype.
template <class F>
constexpr decltype(auto) with_floating(DType dtype, F f) {
  switch (dtype) {
    case DType::f64: return f(std::type_identity<double>());
    case DType::bf16: return f(std::type_identity<BFloat16>());
    case DType::f16: return f(std::type_identity<Float16>());
    default: return f(std::type_identity<float>());
  }
}

/// Calls f(std::type_identity<T>()) with the type T of a list that a dtype's elements have; the last one if it has none.
template <class F, class First, class... Rest>
constexpr decltype(auto) with_type_of(TypeList<First, Rest...>, DType dtype, F& f) {
  if constexpr (sizeof...(Rest) > 0)
    if (dtype != dtype_of<First>()) return with_type_of(TypeList<Rest...>(), dtype, f);
  return f(std::type_identity<First>());
}

/// Calls f(std::type_identity<T>()) with the element type T of an integer dtype, bool not among them.
template <class F>
constexpr decltype(auto) with_integer(DType dtype, F f) {
  return with_type_of(IntegerTypes(), dtype, f);
}

/// Calls f(std::type_identity<T>()) with the element type T of any dtype.
template <class F>
constexpr decltype(auto) with_type(DType dtype, F f) {
  if (dtype == DType::boolean) return f(std::type_identity<bool>());
  return is_floating(dtype) ? with_floating(dtype, f) : with_integer(dtype, f);
}

/// Calls f(std::type_identity<T>()) with the unsigned integer T of the dtype's size, for kernels that only move bits.
template <class F>
decltype(auto) with_bits(DType dtype, F f) {
  switch (size_of(dtype)) {
    case 1: return f(std::type_identity<std::uint8_t>());
    case 2: return f(std::type_identity<std::uint16_t>());
    case 4: return f(std::type_identity<std::uint32_t>());
    default: return f(std::type_identity<std::uint64_t>());
  }
}

}  // namespace reel::detail::inline REEL_TARGET
