#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>

namespace reel::detail {

/// Elements start, start + step, … of an axis, `count` of them, all within it.
struct Range {
  std::int64_t start, count, step;
};

/// The elements that start:stop:step selects in Python on an axis of `size` elements. The largest and the smallest
/// integer as `stop` mean the end in either direction. `step` is not 0.
inline Range range_of(std::int64_t start, std::int64_t stop, std::int64_t step, std::int64_t size) {
  // With a negative step, "before the first element" is -1.
  std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  auto placed = [&](std::int64_t index) { return std::clamp(index < 0 ? index + size : index, low, high); };
  if (step < 0 && stop == std::numeric_limits<std::int64_t>::max()) stop = std::numeric_limits<std::int64_t>::min();
  start = placed(start);
  stop = stop == std::numeric_limits<std::int64_t>::min() ? low : placed(stop);
  std::int64_t span = step > 0 ? stop - start : start - stop;
  // With a step larger than the axis only the first element is selected.
  step = std::clamp(step, -size - 1, size + 1);
  std::int64_t count = span > 0 ? (span - 1) / std::abs(step) + 1 : 0;
  // A start before the first element would be counted from the end by the gradient.
  return {count == 0 ? 0 : start, count, step};
}

}  // namespace reel::detail
