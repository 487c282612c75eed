#pragma once

#include <type_traits>

#include "../../../core/halves.h"

namespace reel::detail::inline REEL_TARGET {

template <class T>
Wide<T> wide(T element) {
  if constexpr (std::is_same_v<T, Wide<T>>)
    return element;
  else
    return widened(element);
}

/// Converts a result back to T, rounded once.
template <class T>
T narrow(Wide<T> number) {
  if constexpr (std::is_same_v<T, Wide<T>>)
    return number;
  else
    return narrowed<T>(number);
}

}  // namespace reel::detail::inline REEL_TARGET
