#pragma once

#include <algorithm>

#include "../core/op_error.h"

namespace reel::nn {

/// Returns the sizes. Throws: ShapeError unless there is at least one and all are positive.
inline Shape checked_sizes(const char* name, const Shape& normalised, Location where) {
  if (normalised.rank() == 0 || std::ranges::any_of(normalised, [](std::int64_t size) { return size <= 0; }))
    detail::fail<ShapeError>(name, where, "{} are no sizes of axes to normalise", to_string(normalised));
  return normalised;
}

}  // namespace reel::nn
