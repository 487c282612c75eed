#pragma once

#include <type_traits>

#include <reel/dtype.h>

#include "../lib/core/halves.h"

// Elements in memory, and what kernels compute with: halves in f32.

namespace reel::detail {
inline namespace REEL_TARGET {

template <class T>
inline constexpr bool is_half_element_v = std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>;

/// f32 for halves, else T.
template <class T>
using Wide = std::conditional_t<is_half_element_v<T>, float, T>;

template <class T>
REEL_HOST_DEVICE Wide<T> loaded(T element) {
  if constexpr (is_half_element_v<T>)
    return widened(element);
  else
    return element;
}

/// Rounds to nearest even.
template <class T>
REEL_HOST_DEVICE T stored(Wide<T> value) {
  if constexpr (is_half_element_v<T>)
    return narrowed<T>(value);
  else
    return value;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
