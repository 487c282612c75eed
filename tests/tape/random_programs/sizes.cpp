#include "sizes.h"

#include <algorithm>

namespace reel_test::programs {

std::optional<Sizes> broadcast(const Sizes& a, const Sizes& b) {
  Sizes shape(std::max(a.size(), b.size()));
  for (std::size_t i = 1; i <= shape.size(); ++i) {
    std::int64_t m = i <= a.size() ? a[a.size() - i] : 1, n = i <= b.size() ? b[b.size() - i] : 1;
    if (m != n && m != 1 && n != 1) return {};
    shape[shape.size() - i] = m == 1 ? n : m;
  }
  return shape;
}

std::vector<std::size_t> broadcast_places(const Sizes& small, const Sizes& large) {
  Sizes strides = row_major(small);
  std::vector<std::size_t> places;
  std::int64_t count = count_of(large);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t place = 0, rest = i;
    for (std::size_t axis = large.size(), own = small.size(); axis-- > 0;) {
      if (own > 0 && small[--own] != 1) place += rest % large[axis] * strides[own];
      rest /= large[axis];
    }
    places.push_back(static_cast<std::size_t>(place));
  }
  return places;
}

std::optional<Sizes> reshaped(const Sizes& shape, const Sizes& strides, const Sizes& wanted) {
  // The view's address of an element must be linear in each wanted index: found by comparing both from the last axis.
  Sizes found(wanted.size());
  std::size_t from = shape.size();
  std::int64_t left = 1, step = 1;  // of the run of axes that is being used up, and the stride within it
  for (std::size_t to = wanted.size(); to-- > 0;) {
    if (wanted[to] == 1) {
      found[to] = 1;
      continue;
    }
    if (left == 1) {
      while (from > 0 && shape[from - 1] == 1) --from;
      if (from == 0) return {};
      --from;
      left = shape[from];
      step = strides[from];
    }
    // Axes that follow each other evenly in memory make one run.
    while (left < wanted[to] || left % wanted[to] != 0) {
      while (from > 0 && shape[from - 1] == 1) --from;
      if (from == 0 || strides[from - 1] != step * left) return {};
      left *= shape[--from];
    }
    found[to] = step;
    step *= wanted[to];
    left /= wanted[to];
  }
  return found;
}

}  // namespace reel_test::programs
