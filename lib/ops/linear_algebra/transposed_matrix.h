#pragma once

#include <reel/detail/immovable.h>
#include <reel/detail/view.h>

namespace reel::detail {

/// A transposed view of a matrix, valid as long as this object.
class TransposedMatrix : Immovable {
 public:
  explicit TransposedMatrix(const View& matrix)
      : dims_{matrix.dims[1], matrix.dims[0]}, strides_{matrix.strides[1], matrix.strides[0]}, view_(matrix) {
    view_.dims = dims_;
    view_.strides = strides_;
    view_.contiguous = false;
  }
  const View& view() const { return view_; }

 private:
  std::int64_t dims_[2], strides_[2];
  View view_;
};

}  // namespace reel::detail
