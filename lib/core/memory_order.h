#pragma once

#include <cstdint>
#include <cstdlib>

#include <reel/detail/view.h>

namespace reel::detail {

/// The axes of a tensor that have more than one element, from that of the largest stride to that of the smallest. Axes
/// of equal strides keep their order, and so does one of stride 0, whose elements are one in memory.
/// Source: NumPy's nditer, npyiter_find_best_axis_ordering.
struct MemoryOrder {
  int rank = 0;
  int axes[8];
  /// True if the axes are in their own order, as in a row-major tensor.
  bool is_logical = true;

  MemoryOrder(const std::int64_t* dims, const std::int64_t* strides, int all) {
    for (int axis = 0; axis < all; ++axis) {
      if (dims[axis] == 1) continue;
      int place = rank;
      for (int k = rank; k-- > 0;) {
        std::int64_t before = std::abs(strides[axes[k]]), stride = std::abs(strides[axis]);
        if (before == 0 || stride == 0) continue;
        if (before >= stride) break;
        place = k;
      }
      is_logical &= place == rank;
      for (int k = rank++; k > place; --k) axes[k] = axes[k - 1];
      axes[place] = axis;
    }
  }
};

}  // namespace reel::detail
