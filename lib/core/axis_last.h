#pragma once

#include <cstdint>

#include <reel/detail/view.h>

namespace reel::detail {

/// A view with one axis moved behind all others.
class AxisLast {
 public:
  AxisLast(const View& x, int axis) : view_(x) {
    if (axis + 1 >= x.rank) return;
    int to = 0;
    for (int from = 0; from < x.rank; ++from) {
      int place = from == axis ? x.rank - 1 : to++;
      dims_[place] = x.dims[from];
      strides_[place] = x.strides[from];
    }
    view_.dims = dims_;
    view_.strides = strides_;
    view_.contiguous = false;
  }
  AxisLast(const AxisLast&) = delete;
  AxisLast& operator=(const AxisLast&) = delete;
  const View& view() const { return view_; }
  operator const View&() const { return view_; }

 private:
  View view_;
  std::int64_t dims_[8], strides_[8];
};

}  // namespace reel::detail
