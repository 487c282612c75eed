#pragma once

#include "../../lib/core/iteration.h"
#include "../../lib/core/target.h"

namespace reel::detail::inline REEL_TARGET {

/// The rows of several tensors along an axis, by the index of the first one's row: an iteration over all other axes.
template <int count>
Iteration<count> rows_along(const View* const (&views)[count], int axis) {
  std::int64_t dims[count][8], strides[count][8];
  View heads[count];
  const View* pointers[count];
  for (int k = 0; k < count; ++k) {
    heads[k] = *views[k];
    heads[k].rank = 0;
    for (int i = 0; i < views[k]->rank; ++i) {
      if (i == axis) continue;
      dims[k][heads[k].rank] = views[k]->dims[i];
      strides[k][heads[k].rank++] = views[k]->strides[i];
    }
    heads[k].dims = dims[k];
    heads[k].strides = strides[k];
    pointers[k] = &heads[k];
  }
  return Iteration<count>(pointers);
}

}  // namespace reel::detail::inline REEL_TARGET
