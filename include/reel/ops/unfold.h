#pragma once

#include <array>
#include <cstdint>

#include <reel/tensor.h>

namespace reel {

/// Rows and columns; one number stands for both.
struct RowsAndColumns {
  std::int64_t rows, columns;
  constexpr RowsAndColumns(std::int64_t both) : rows(both), columns(both) {}
  constexpr RowsAndColumns(std::int64_t rows, std::int64_t columns) : rows(rows), columns(columns) {}
};

struct UnfoldOptions {
  RowsAndColumns dilation = 1, padding = 0, stride = 1;
};

/// The patches of images as columns: x (N, C, H, W) → (N, C kh kw, L), or without N; L = (rows of patches) (columns of
/// patches), each ⌊(size + 2 padding − dilation (kernel − 1) − 1) / stride⌋ + 1. Padding is 0.
/// Throws: ShapeError, also where no patch fits; DTypeError unless floating; Error for options out of range.
/// Source: PyTorch's unfold.
Tensor unfold(const Arg& x, RowsAndColumns kernel, UnfoldOptions options = {});

/// The transpose of unfold: patches (N, C kh kw, L) are added up into images (N, C, H, W) of a given size, or without N.
/// Throws: as unfold.
/// Source: PyTorch's fold.
Tensor fold(const Arg& x, RowsAndColumns size, RowsAndColumns kernel, UnfoldOptions options = {});

}  // namespace reel
