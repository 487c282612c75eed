#pragma once

#include <cstdint>
#include <type_traits>

#include <reel/dtype.h>

#include "target.h"

namespace reel::detail::inline REEL_TARGET {

/// Calls f(std::type_identity<T>()) with the element type T of a floating dtype.
template <class F>
decltype(auto) with_floating(DType dtype, F f) {
  switch (dtype) {
    case DType::f64: return f(std::type_identity<double>());
    case DType::bf16: return f(std::type_identity<BFloat16>());
    case DType::f16: return f(std::type_identity<Float16>());
    default: return f(std::type_identity<float>());
  }
}

/// Calls f(std::type_identity<T>()) with the element type T of an integer dtype, bool not among them.
template <class F>
decltype(auto) with_integer(DType dtype, F f) {
  switch (dtype) {
    case DType::i8: return f(std::type_identity<std::int8_t>());
    case DType::i16: return f(std::type_identity<std::int16_t>());
    case DType::i32: return f(std::type_identity<std::int32_t>());
    case DType::u8: return f(std::type_identity<std::uint8_t>());
    default: return f(std::type_identity<std::int64_t>());
  }
}

/// Calls f(std::type_identity<T>()) with the element type T of any dtype.
template <class F>
decltype(auto) with_type(DType dtype, F f) {
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
