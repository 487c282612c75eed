#pragma once

#include <cstdint>

#include <reel/detail/view.h>

#include "../../lib/core/target.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// The layout of matrices with contiguous rows or columns: element (i, j) is at i · step + j or, `by_columns`, at j ·
/// step + i.
struct Lines {
  std::int64_t step;  ///< the leading dimension, at least the length of a row or column
  bool by_columns;
};

/// Returns true if the last two axes are such matrices, no two elements share an address, and the strides of the
/// leading axes are not negative.
inline bool has_lines(const View& x) {
  for (int axis = 0; axis < x.rank - 2; ++axis)
    if (x.strides[axis] < 0 && x.dims[axis] > 1) return false;
  std::int64_t rows = x.dims[x.rank - 2], columns = x.dims[x.rank - 1];
  std::int64_t row_step = x.strides[x.rank - 2], column_step = x.strides[x.rank - 1];
  return ((columns == 1 || column_step == 1) && (rows == 1 || row_step >= columns)) ||
         ((rows == 1 || row_step == 1) && (columns == 1 || column_step >= rows));
}

/// The layout of matrices for which has_lines is true.
inline Lines lines_of(const View& x) {
  std::int64_t rows = x.dims[x.rank - 2], columns = x.dims[x.rank - 1];
  std::int64_t row_step = x.strides[x.rank - 2], column_step = x.strides[x.rank - 1];
  if ((columns == 1 || column_step == 1) && (rows == 1 || row_step >= columns))
    return {rows == 1 ? columns : row_step, false};
  return {columns == 1 ? rows : column_step, true};
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
