#pragma once

#include <functional>

#include <reel/tensor.h>

namespace reel::detail {

/// The value and slope of a function at a distance along a direction.
struct LinePoint {
  double length, value;
  double slope;  ///< the directional derivative
  Tensor gradient;
};

struct LineSearch {
  LinePoint point;
  std::int64_t evaluations;
};

/// Searches from `start`, length 0 with a negative slope, for a point that satisfies the strong Wolfe conditions,
/// beginning with `first_length`; returns the best point after 25 evaluations. An interval shorter than `tolerance`, in
/// units of length, is not divided.
/// Source: Nocedal and Wright, Numerical optimization (2006), algorithms 3.5 and 3.6; interpolation and safeguards as
/// in Schmidt's minFunc (2005).
LineSearch search_line(const std::function<LinePoint(double length)>& evaluate, const LinePoint& start,
                       double first_length, double tolerance);

}  // namespace reel::detail
