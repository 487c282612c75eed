#pragma once

#include <cstdint>
#include <type_traits>

#include <reel/dtype.h>

#include "target.h"

namespace reel::detail::inline REEL_TARGET {

template <class... A, class... B>
TypeList<A..., B...> operator+(TypeList<A...>, TypeList<B...>);
template <class... T>
decltype((TypeList<>() + ... +
          std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, TypeList<T>, TypeList<>>()))
    integers_of(TypeList<T...>);
/// The types of the elements of integer dtypes, bool not among them.
using IntegerTypes = decltype(integers_of(ElementTypes()));

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
