#pragma once

#include <cstdint>

#include <reel/detail/view.h>

#include "../../lib/core/target.h"

namespace reel::detail::inline REEL_TARGET {

/// The layout of matrices with contiguous rows or columns: element (i, j) is at i · leading_dimension + j
/// or, `by_columns`, at j · leading_dimension + i.
struct MatrixLayout {
  std::int64_t leading_dimension;  ///< the leading dimension, at least the length of a row or column
  bool by_columns;
};

/// Returns true if the last two axes are such matrices, no two elements share an address, and the strides of the
/// leading axes are not negative.
inline bool has_matrix_layout(const View& x) {
  for (int axis = 0; axis < x.rank - 2; ++axis)
    if (x.strides[axis] < 0 && x.dims[axis] > 1) return false;
  std::int64_t rows = x.dims[x.rank - 2], columns = x.dims[x.rank - 1];
  std::int64_t row_stride = x.strides[x.rank - 2], column_stride = x.strides[x.rank - 1];
  return ((columns == 1 || column_stride == 1) && (rows == 1 || row_stride >= columns)) ||
         ((rows == 1 || row_stride == 1) && (columns == 1 || column_stride >= rows));
}

/// The layout of matrices for which has_matrix_layout is true.
inline MatrixLayout matrix_layout_of(const View& x) {
  std::int64_t rows = x.dims[x.rank - 2], columns = x.dims[x.rank - 1];
  std::int64_t row_stride = x.strides[x.rank - 2], column_stride = x.strides[x.rank - 1];
  if ((columns == 1 || column_stride == 1) && (rows == 1 || row_stride >= columns))
    return {rows == 1 ? columns : row_stride, false};
  return {columns == 1 ? rows : column_stride, true};
}

}  // namespace reel::detail::inline REEL_TARGET
