#include <cstddef>
#include <cstdlib>

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

Sizes elementwise_strides(const Sizes& shape, const std::vector<Form>& operands) {
  std::optional<std::vector<std::size_t>> found;
  for (const Form& operand : operands) {
    if (operand.shape != shape || count_of(shape) == 0) continue;
    std::vector<std::size_t> order, own;
    bool varies = false;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == 1) continue;
      own.push_back(axis);
      varies |= operand.strides[axis] != 0;
      // In front of the axes of smaller strides, up to one that is larger; those of stride 0 are passed by.
      std::size_t place = order.size();
      for (std::size_t k = order.size(); k-- > 0;) {
        std::int64_t before = std::abs(operand.strides[order[k]]), here = std::abs(operand.strides[axis]);
        if (before == 0 || here == 0) continue;
        if (before >= here) break;
        place = k;
      }
      order.insert(order.begin() + static_cast<std::ptrdiff_t>(place), axis);
    }
    if (!varies) continue;
    if (order == own || (found && *found != order)) return row_major(shape);
    found = order;
  }
  if (!found) return row_major(shape);
  Sizes strides(shape.size(), 1);
  std::int64_t step = 1;
  for (std::size_t k = found->size(); k-- > 0; step *= shape[(*found)[k]]) strides[(*found)[k]] = step;
  return strides;
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
