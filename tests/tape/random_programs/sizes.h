#pragma once

#include <optional>

#include "program.h"

namespace reel_test::programs {

inline std::int64_t count_of(const Sizes& shape) {
  std::int64_t count = 1;
  for (std::int64_t size : shape) count *= size;
  return count;
}

inline Sizes row_major(const Sizes& shape) {
  Sizes strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

/// The shape to which two broadcast, if they do.
std::optional<Sizes> broadcast(const Sizes& a, const Sizes& b);
inline bool broadcasts_to(const Sizes& a, const Sizes& b) { return broadcast(a, b) == b; }

/// For each element of the large shape, in row-major order, the element of the small one that is broadcast to it.
std::vector<std::size_t> broadcast_places(const Sizes& small, const Sizes& large);

/// The strides that show a view's elements under another shape, if there are any.
std::optional<Sizes> reshaped(const Sizes& shape, const Sizes& strides, const Sizes& wanted);

}  // namespace reel_test::programs
