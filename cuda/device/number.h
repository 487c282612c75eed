#pragma once

#include <cstdint>
#include <type_traits>

#include <reel/dtype.h>

#include "../../lib/core/convert.h"
#include "element.h"

// Elements of a dtype that is known at run time only, for kernels that would otherwise be compiled once per dtype.

namespace reel::detail::inline REEL_TARGET {

/// Loads a floating element as a floating Number, any other as an integer. f64 is never loaded as f32.
template <class Number>
REEL_HOST_DEVICE Number number_at(DType dtype, const void* data, std::int64_t offset) {
  auto element = [=]<class T>(std::type_identity<T>) {
    return static_cast<Number>(loaded(static_cast<const T*>(data)[offset]));
  };
  if constexpr (std::is_integral_v<Number>) {
    switch (dtype) {
      case DType::i8: return element(std::type_identity<std::int8_t>());
      case DType::i16: return element(std::type_identity<std::int16_t>());
      case DType::i32: return element(std::type_identity<std::int32_t>());
      case DType::u8: return element(std::type_identity<std::uint8_t>());
      case DType::boolean: return element(std::type_identity<bool>());
      default: return element(std::type_identity<std::int64_t>());
    }
  } else {
    switch (dtype) {
      case DType::f64: return element(std::type_identity<double>());
      case DType::bf16: return element(std::type_identity<BFloat16>());
      case DType::f16: return element(std::type_identity<Float16>());
      default: return element(std::type_identity<float>());
    }
  }
}

/// Stores an integer as an integer, and a floating number as a floating one, rounded once.
template <class Number>
REEL_HOST_DEVICE void put_number(DType dtype, void* data, std::int64_t offset, Number number) {
  auto put = [=]<class T>(std::type_identity<T>) { static_cast<T*>(data)[offset] = convert<T>(number); };
  if constexpr (std::is_integral_v<Number>) {
    switch (dtype) {
      case DType::i8: return put(std::type_identity<std::int8_t>());
      case DType::i16: return put(std::type_identity<std::int16_t>());
      case DType::i32: return put(std::type_identity<std::int32_t>());
      case DType::u8: return put(std::type_identity<std::uint8_t>());
      case DType::boolean: return put(std::type_identity<bool>());
      default: return put(std::type_identity<std::int64_t>());
    }
  } else {
    switch (dtype) {
      case DType::f64: return put(std::type_identity<double>());
      case DType::bf16: return put(std::type_identity<BFloat16>());
      case DType::f16: return put(std::type_identity<Float16>());
      default: return put(std::type_identity<float>());
    }
  }
}

}  // namespace reel::detail::inline REEL_TARGET
