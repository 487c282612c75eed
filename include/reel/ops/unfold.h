#pragma once

#include <array>
#include <cstdint>

#include <reel/tensor.h>

namespace reel {

/// A number for the rows and one for the columns of images; one number stands for both.
struct RowsAndColumns {
  std::int64_t rows,  ///< along the axis H
      columns;        ///< along the axis W
  /// One number for rows and columns.
  constexpr RowsAndColumns(std::int64_t both) : rows(both), columns(both) {}
  /// A number for the rows and one for the columns.
  constexpr RowsAndColumns(std::int64_t rows, std::int64_t columns) : rows(rows), columns(columns) {}
};

/// Options of `unfold` and `fold`.
struct UnfoldOptions {
  RowsAndColumns dilation = 1,  ///< elements from one element of a patch to the next, in [1, 2³¹]; default 1
      padding = 0,              ///< zeros around the images, in [0, 2³¹]; default 0
      stride = 1;               ///< elements from one patch to the next, in [1, 2³¹]; default 1
};

/// The patches of images as columns: x (N, C, H, W) → (N, C kh kw, L), or both without N; L = (rows of patches)
/// (columns of patches), each ⌊(size + 2 padding − dilation (kernel − 1) − 1) / stride⌋ + 1. The padding is 0.
/// Throws: ShapeError for shapes that do not fit, and where no patch fits; DTypeError unless floating; Error for
/// options out of range.
/// Source: PyTorch's unfold.
Tensor unfold(const Arg& x, RowsAndColumns kernel, UnfoldOptions options = {});

/// The transpose of unfold: patches (N, C kh kw, L) are added up into images (N, C, H, W) of the given size (H, W), or
/// both without N.
/// Throws: ShapeError for shapes that do not fit, and where no patch fits; DTypeError unless floating; Error for
/// options out of range.
/// Source: PyTorch's fold.
Tensor fold(const Arg& x, RowsAndColumns size, RowsAndColumns kernel, UnfoldOptions options = {});

}  // namespace reel
