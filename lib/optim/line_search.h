#pragma once

#include <functional>

#include <reel/tensor.h>

namespace reel::detail {

/// What a function is, so far along a direction.
struct LinePoint {
  double length, value;
  double slope;  ///< the gradient by the direction
  Tensor gradient;
};

struct LineSearch {
  LinePoint point;
  std::int64_t evaluations;
};

/// Looks from `start`, length 0 and falling, for a point that meets the strong Wolfe conditions, beginning with a length;
/// or the best that 25 evaluations find. A pair of points closer than `tolerance`, in units of length, is not divided.
/// Source: Nocedal and Wright, Numerical optimization (2006), algorithms 3.5 and 3.6; interpolation and safeguards as
/// Schmidt's minFunc (2005).
LineSearch search_line(const std::function<LinePoint(double length)>& evaluate, const LinePoint& start,
                       double first_length, double tolerance);

}  // namespace reel::detail
