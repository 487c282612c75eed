#pragma once

#include <reel/ops/layout.h>
#include <reel/ops/shape.h>

#include "../../core/op_error.h"

// Views of a batch with its channels moved to axis 1 or back.

namespace reel::detail {

/// Throws: Error for a value that is no layout.
inline void check_layout(const char* op, Layout layout, Location where) {
  if (layout != Layout::nchw && layout != Layout::nhwc)
    fail<Error>(op, where, "there is no layout of the number {}", static_cast<int>(layout));
}

inline Tensor channels_first(const Tensor& x, Layout layout) {
  if (layout == Layout::nchw) return x;
  Shape axes{0, x.rank() - 1};
  for (int axis = 1; axis + 1 < x.rank(); ++axis) axes.push_back(axis);
  return permute(x, axes);
}

/// A view of a batch with its channels moved from axis 1 to where the layout has them.
inline Tensor channels_placed(const Tensor& x, Layout layout) {
  if (layout == Layout::nchw) return x;
  Shape axes{0};
  for (int axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  axes.push_back(1);
  return permute(x, axes);
}

}  // namespace reel::detail
