#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

#include <reel/tensor.h>

/// \file
/// Functions of shapes and axes. Negative axes and indices count from the end. A view shares its elements with x; all
/// other results are copies.

namespace reel {

/// The elements in row-major order under another shape; one size may be −1 and is computed. A view where x's strides
/// allow it, else a copy.
/// Throws: ShapeError unless the counts agree.
/// Source: NumPy's reshape.
Tensor reshape(const Arg& x, const Shape& shape);
/// A view of the elements in row-major order under another shape; one size may be −1 and is computed.
/// Throws: ShapeError unless the counts agree and x's strides allow it.
/// Source: PyTorch's view.
Tensor view(const Arg& x, const Shape& shape);
/// Merges the axes first to last into one: a view where x's strides allow it, else a copy; a tensor of rank 0 gives a
/// vector.
/// Throws: ShapeError if `last` is before `first`, and for an axis that does not exist.
/// Source: PyTorch's flatten.
Tensor flatten(const Arg& x, int first = 0, int last = -1);
/// A view with two axes exchanged; by default the last two.
/// Throws: ShapeError for an axis that does not exist.
/// Source: PyTorch's transpose.
Tensor transpose(const Arg& x, int first = -2, int second = -1);
/// A view with axis i taken from x's axis `axes[i]`.
/// Throws: ShapeError unless `axes` is a permutation of all axes.
/// Source: PyTorch's permute.
Tensor permute(const Arg& x, const Shape& axes);
/// A view in which axes of size 1, and new axes in front, repeat their elements. −1 keeps a size.
/// Throws: ShapeError if x does not broadcast to that shape.
/// Source: PyTorch's expand.
Tensor expand(const Arg& x, const Shape& shape);

/// A view with axes of size 1 inserted, at these positions of the result.
/// Throws: ShapeError if a position does not exist or is named twice, or there would be more than 8 axes.
/// Source: NumPy's expand_dims.
Tensor unsqueeze(const Arg& x, const Shape& axes);
/// A view with one axis of size 1 inserted, at this position of the result.
/// Throws: ShapeError if the position does not exist, or there would be more than 8 axes.
/// Source: NumPy's expand_dims.
template <std::integral Axis>
Tensor unsqueeze(const Arg& x, Axis axis) {
  return unsqueeze(x, Shape{static_cast<std::int64_t>(axis)});
}
/// A view without the axes of size 1. Source: NumPy's squeeze.
Tensor squeeze(const Arg& x);
/// A view without the given axes, of size 1.
/// Throws: ShapeError if an axis is of another size, does not exist or is named twice.
/// Source: NumPy's squeeze.
Tensor squeeze(const Arg& x, const Shape& axes);
/// A view without the given axis, of size 1.
/// Throws: ShapeError if the axis is of another size or does not exist.
/// Source: NumPy's squeeze.
template <std::integral Axis>
Tensor squeeze(const Arg& x, Axis axis) {
  return squeeze(x, Shape{static_cast<std::int64_t>(axis)});
}

/// A view of the elements start, start + step, … before `stop`, along an axis. Ends beyond the tensor are cut, as in
/// Python; a negative step goes backwards.
/// Throws: ShapeError for a step of 0, and for an axis that does not exist.
Tensor slice(const Arg& x, int axis, std::int64_t start, std::int64_t stop = std::numeric_limits<std::int64_t>::max(),
             std::int64_t step = 1);
/// A view of element `index` along an axis, which is dropped.
/// Throws: IndexError if the index is out of range; ShapeError for an axis that does not exist.
/// Source: PyTorch's select.
Tensor select(const Arg& x, int axis, std::int64_t index);
/// Views of `size` elements each along an axis; the last one is shorter if the size does not divide the axis.
/// Throws: ShapeError unless the size is positive, and for an axis that does not exist.
/// Source: PyTorch's split.
std::vector<Tensor> split(const Arg& x, std::int64_t size, int axis = 0);
/// Views of the given sizes along an axis.
/// Throws: ShapeError unless they add up to the size of the axis, and for an axis that does not exist.
/// Source: PyTorch's split.
std::vector<Tensor> split(const Arg& x, const std::vector<std::int64_t>& sizes, int axis = 0);
/// Views of ⌈size / count⌉ elements each along an axis, the last one shorter: at most `count`, fewer if the elements
/// are used up before; for an axis of size 0, `count` empty ones.
/// Throws: ShapeError unless count is positive, and for an axis that does not exist.
/// Source: PyTorch's chunk.
std::vector<Tensor> chunk(const Arg& x, std::int64_t count, int axis = 0);
/// A view with the elements in reverse order along each axis. Source: NumPy's flip.
Tensor flip(const Arg& x);
/// A view with the elements in reverse order along the given axes.
/// Throws: ShapeError if an axis does not exist or is named twice.
/// Source: NumPy's flip.
Tensor flip(const Arg& x, const Shape& axes);
/// A view with the elements in reverse order along one axis.
/// Throws: ShapeError if the axis does not exist.
/// Source: NumPy's flip.
template <std::integral Axis>
Tensor flip(const Arg& x, Axis axis) {
  return flip(x, Shape{static_cast<std::int64_t>(axis)});
}

/// Concatenates tensors along an axis, in their common dtype.
/// Throws: ShapeError unless the other sizes agree, for no tensors, and for an axis that does not exist; DeviceError
/// for tensors on different devices.
/// Source: NumPy's concatenate.
Tensor concat(std::span<const Tensor> tensors, int axis = 0, Location where = Location::here());
/// Concatenates tensors along an axis, in their common dtype.
/// Throws: ShapeError unless the other sizes agree, for no tensors, and for an axis that does not exist; DeviceError
/// for tensors on different devices.
/// Source: NumPy's concatenate.
inline Tensor concat(std::initializer_list<Tensor> tensors, int axis = 0, Location where = Location::here()) {
  return concat(std::span(tensors.begin(), tensors.size()), axis, where);
}
/// Stacks tensors of one shape along a new axis, in their common dtype.
/// Throws: ShapeError unless all have one shape, of less than 8 axes, for no tensors, and for a position that does not
/// exist; DeviceError for tensors on different devices.
/// Source: NumPy's stack.
Tensor stack(std::span<const Tensor> tensors, int axis = 0, Location where = Location::here());
/// Stacks tensors of one shape along a new axis, in their common dtype.
/// Throws: ShapeError unless all have one shape, of less than 8 axes, for no tensors, and for a position that does not
/// exist; DeviceError for tensors on different devices.
/// Source: NumPy's stack.
inline Tensor stack(std::initializer_list<Tensor> tensors, int axis = 0, Location where = Location::here()) {
  return stack(std::span(tensors.begin(), tensors.size()), axis, where);
}

/// Moves the elements by shifts[i] positions along axes[i]; those that leave at the end re-enter at the start.
/// Throws: ShapeError unless there are as many shifts as axes, and for an axis that does not exist.
/// Source: NumPy's roll.
Tensor roll(const Arg& x, const Shape& shifts, const Shape& axes);
/// Moves the elements by `shift` positions along an axis; those that leave at the end re-enter at the start.
/// Throws: ShapeError for an axis that does not exist.
/// Source: NumPy's roll.
template <std::integral Axis>
Tensor roll(const Arg& x, std::int64_t shift, Axis axis) {
  return roll(x, Shape{shift}, Shape{static_cast<std::int64_t>(axis)});
}
/// Repeats x side by side, repetitions[i] times along axis i. Missing axes are added in front: to x with size 1, to
/// `repetitions` with 1.
/// Throws: ShapeError for a negative number.
/// Source: NumPy's tile.
Tensor tile(const Arg& x, const Shape& repetitions);
/// Repeats each element `count` times in a row along an axis.
/// Throws: ShapeError for a negative count, and for an axis that does not exist.
/// Source: NumPy's repeat.
Tensor repeat(const Arg& x, std::int64_t count, int axis);
/// Repeats element i along an axis counts[i] times.
/// Throws: ShapeError unless there is a count, not negative, for each element, and for an axis that does not exist.
/// Source: NumPy's repeat.
Tensor repeat(const Arg& x, const std::vector<std::int64_t>& counts, int axis);

/// x on and below a diagonal of the last two axes, 0 above; diagonal 0 is the main one, 1 the one above it, −1 the one
/// below.
/// Throws: ShapeError for fewer than two axes.
/// Source: NumPy's tril.
Tensor tril(const Arg& x, std::int64_t diagonal = 0);
/// x on and above a diagonal of the last two axes, 0 below; diagonal 0 is the main one, 1 the one above it, −1 the one
/// below.
/// Throws: ShapeError for fewer than two axes.
/// Source: NumPy's triu.
Tensor triu(const Arg& x, std::int64_t diagonal = 0);
/// For a vector, a square matrix with it on a diagonal, zeros elsewhere; for a matrix, a view of a diagonal, empty if
/// there is none. Diagonal 0 is the main one, 1 the one above it, −1 the one below.
/// Throws: ShapeError for other ranks.
/// Source: NumPy's diag.
Tensor diag(const Arg& x, std::int64_t diagonal = 0);

/// Options of `diagonal` and `diag_embed`.
struct DiagonalAxes {
  /// The index of the diagonal: 0 (default) is the main one, 1 the one above it, −1 the one below.
  std::int64_t diagonal = 0;
  int first = -2;   ///< the axis of the rows, of x for `diagonal`, of the result for `diag_embed`; default −2
  int second = -1;  ///< the axis of the columns; default −1
};

/// A view of a diagonal of the matrices in two axes of x: the other axes in their order, then the diagonal, empty if
/// there is none.
/// Throws: ShapeError if an axis does not exist, or both are the same.
/// Source: PyTorch's diagonal; by default the last two axes, not the first.
Tensor diagonal(const Arg& x, DiagonalAxes options = {});
/// Square matrices with the vectors in x's last axis on a diagonal, zeros elsewhere: (…, N) → (…, N + |diagonal|,
/// N + |diagonal|), the matrices in two axes of the result.
/// Throws: ShapeError for rank 0 and more than 7 axes, if an axis of the result does not exist, or both are the same.
/// Source: PyTorch's diag_embed.
Tensor diag_embed(const Arg& x, DiagonalAxes options = {});

/// The axis of the grid that the first tensor of `meshgrid` has: `ij` the first one, `xy` the second one, exchanged with
/// that of the second tensor.
enum class GridIndexing : std::uint8_t { ij, xy };

/// Options of `meshgrid`.
struct MeshgridOptions {
  GridIndexing indexing = GridIndexing::ij;  ///< default ij; NumPy's is xy
};

/// The coordinates of a grid: one view for each tensor (N_k), or of rank 0 for N_k = 1, of the shape (N_0, N_1, …), in
/// which element (i_0, i_1, …) of the k-th is element i_k of the tensor.
/// Throws: ShapeError for tensors with several axes, for no tensors or more than 8; DTypeError unless all have one
/// dtype; DeviceError for tensors on different devices.
/// Source: PyTorch's meshgrid.
std::vector<Tensor> meshgrid(std::span<const Tensor> tensors, MeshgridOptions options = {},
                             Location where = Location::here());
/// The coordinates of a grid: one view for each tensor (N_k), or of rank 0 for N_k = 1, of the shape (N_0, N_1, …), in
/// which element (i_0, i_1, …) of the k-th is element i_k of the tensor.
/// Throws: ShapeError for tensors with several axes, for no tensors or more than 8; DTypeError unless all have one
/// dtype; DeviceError for tensors on different devices.
/// Source: PyTorch's meshgrid.
inline std::vector<Tensor> meshgrid(std::initializer_list<Tensor> tensors, MeshgridOptions options = {},
                                    Location where = Location::here()) {
  return meshgrid(std::span(tensors.begin(), tensors.size()), options, where);
}

/// The elements of x in row-major order without gaps: a view if x is contiguous, else a copy.
Tensor contiguous(const Arg& x);
/// A contiguous copy of x.
Tensor copy(const Arg& x);

}  // namespace reel
