#pragma once

#include <type_traits>

#include <reel/dtype.h>

#include "../../lib/core/halves.h"

// Loading and storing elements; kernels compute with halves in f32.

namespace reel::detail::inline REEL_TARGET {

template <class T>
REEL_HOST_DEVICE Wide<T> loaded(T element) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, Float16>) {  // one instruction
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(element.bits));
    return value;
  }
#endif
  if constexpr (is_half_v<T>)
    return widened(element);
  else
    return element;
}

/// The value rounded to the nearest T, ties to even.
template <class T>
REEL_HOST_DEVICE T stored(Wide<T> value) {
  if constexpr (!is_half_v<T>) {
    return value;
  } else {
#if defined(__CUDA_ARCH__)
    T half;
    if constexpr (std::is_same_v<T, Float16>)
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
    else
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
    return half;
#else
    return narrowed<T>(value);
#endif
  }
}

}  // namespace reel::detail::inline REEL_TARGET
