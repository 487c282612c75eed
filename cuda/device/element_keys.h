#pragma once

#include "offsets.h"
#include "rows_along.h"
#include "sort_key.h"

namespace reel::detail::inline REEL_TARGET {

/// The keys of a tensor's rows along an axis, as a source for sorted_rows.h.
struct ElementKeys {
  Offsets<1> starts;
  const void* data;
  DType dtype;
  std::int64_t step;
  int bits;
  std::uint64_t flip;

  ElementKeys(const View& x, int axis, bool descending)
      : starts(rows_along<1>({&x}, axis)),
        data(x.data),
        dtype(x.dtype),
        step(x.strides[axis]),
        bits(key_bits(x.dtype)),
        flip(descending ? nan_key(x.dtype) : 0) {}

  REEL_DEVICE std::int64_t start(std::int64_t row) const {
    std::int64_t start[1];
    starts.find(row, start);
    return start[0];
  }
  REEL_DEVICE std::uint64_t key(std::int64_t start, std::int64_t place) const {
    return key_at(dtype, data, start + place * step) ^ flip;
  }
};

}  // namespace reel::detail::inline REEL_TARGET
