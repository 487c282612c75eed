#include "line_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace reel::detail {

namespace {

constexpr double decrease = 1e-4, curvature = 0.9;  // c₁ and c₂
constexpr std::int64_t most_iterations = 25;
constexpr double infinity = std::numeric_limits<double>::infinity();

// The minimum, between the bounds, of the cubic through two points with their slopes; the middle if it has none, or if
// one of the values is infinite.
double cubic_minimum(const LinePoint& a, const LinePoint& b, double low, double high) {
  const LinePoint &p = a.length <= b.length ? a : b, &q = a.length <= b.length ? b : a;
  double d = p.slope + q.slope - 3 * (p.value - q.value) / (p.length - q.length);
  double square = d * d - p.slope * q.slope;
  if (!(square >= 0)) return (low + high) / 2;
  double root = std::sqrt(square);
  double found = q.length - (q.length - p.length) * ((q.slope + root - d) / (q.slope - p.slope + 2 * root));
  return std::isfinite(found) ? std::clamp(found, low, high) : (low + high) / 2;
}

class Search {
 public:
  Search(const std::function<LinePoint(double)>& evaluate, const LinePoint& start, double tolerance)
      : evaluate_(evaluate), start_(start), tolerance_(tolerance) {}

  LineSearch run(double first_length) {
    bool done = bracket(first_length);
    while (!done && iterations_ < most_iterations && width() >= tolerance_) done = narrow();
    return {low_, evaluations_};
  }

 private:
  LinePoint at(double length) {
    ++evaluations_;
    LinePoint point = evaluate_(length);
    // A value that is not finite is treated as infinite: the point is too far.
    if (!std::isfinite(point.value) || !std::isfinite(point.slope)) point.value = infinity;
    return point;
  }
  bool falls_enough(const LinePoint& point) const {
    return point.value <= start_.value + decrease * point.length * start_.slope;
  }
  bool is_flat_enough(const LinePoint& point) const { return std::abs(point.slope) <= -curvature * start_.slope; }
  double width() const { return std::abs(high_.length - low_.length); }

  // Stores the better of the two in `low_`.
  void hold(const LinePoint& a, const LinePoint& b) {
    bool first = !(b.value < a.value);
    low_ = first ? a : b;
    high_ = first ? b : a;
  }

  // Increases the length until a minimum is between two points; returns true if one of them satisfies the conditions.
  bool bracket(double length) {
    LinePoint before = start_, now = at(length);
    for (; iterations_ < most_iterations; ++iterations_) {
      if (!falls_enough(now) || (iterations_ > 1 && now.value >= before.value)) {
        hold(before, now);
        return false;
      }
      if (is_flat_enough(now)) {
        low_ = now;
        return true;
      }
      if (now.slope >= 0) {
        hold(before, now);
        return false;
      }
      double least = now.length + 0.01 * (now.length - before.length);
      double next = cubic_minimum(before, now, least, now.length * 10);
      before = std::exchange(now, at(next));
    }
    hold(start_, now);
    return false;
  }

  // Replaces one of the two points by one between them; returns true if that satisfies the conditions.
  bool narrow() {
    LinePoint now = at(between());
    ++iterations_;
    if (!falls_enough(now) || now.value >= low_.value) {
      high_ = now;
      if (high_.value < low_.value) std::swap(low_, high_);
      return false;
    }
    bool done = is_flat_enough(now);
    if (!done && now.slope * (high_.length - low_.length) >= 0) high_ = low_;
    low_ = now;
    return done;
  }

  // A length between the two. One that is close to an end for the second time, or outside, is moved a tenth of the
  // width away.
  double between() {
    auto [left, right] = std::minmax(low_.length, high_.length);
    double length = cubic_minimum(low_, high_, left, right), margin = 0.1 * (right - left);
    bool is_close = std::min(right - length, length - left) < margin;
    bool moves = is_close && (was_close_ || length >= right || length <= left);
    was_close_ = is_close && !moves;
    if (!moves) return length;
    return std::abs(length - right) < std::abs(length - left) ? right - margin : left + margin;
  }

  const std::function<LinePoint(double)>& evaluate_;
  const LinePoint& start_;
  double tolerance_;
  LinePoint low_ = {}, high_ = {};
  std::int64_t evaluations_ = 0, iterations_ = 0;
  bool was_close_ = false;
};

}  // namespace

LineSearch search_line(const std::function<LinePoint(double length)>& evaluate, const LinePoint& start,
                       double first_length, double tolerance) {
  return Search(evaluate, start, tolerance).run(first_length);
}

}  // namespace reel::detail
