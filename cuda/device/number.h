#pragma once

#include <cstdint>
#include <type_traits>

#include <reel/dtype.h>

#include "../../lib/core/convert.h"
#include "../../lib/core/dtype_dispatch.h"
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
    return dtype == DType::boolean ? element(std::type_identity<bool>()) : with_integer(dtype, element);
  } else {
    return with_floating(dtype, element);
  }
}

/// Stores an integer as an integer, and a floating number as a floating one, rounded once.
template <class Number>
REEL_HOST_DEVICE void put_number(DType dtype, void* data, std::int64_t offset, Number number) {
  auto put = [=]<class T>(std::type_identity<T>) { static_cast<T*>(data)[offset] = convert<T>(number); };
  if constexpr (std::is_integral_v<Number>) {
    return dtype == DType::boolean ? put(std::type_identity<bool>()) : with_integer(dtype, put);
  } else {
    return with_floating(dtype, put);
  }
}

}  // namespace reel::detail::inline REEL_TARGET
