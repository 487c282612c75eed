#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

#include <reel/tensor.h>

// Negative axes and indices count from the end. What is called a view shares its elements with x; all else is a copy.
// Axes are one number, or several in braces; all throw ShapeError for an axis that does not exist.

namespace reel {

/// The elements in row-major order under another shape; one size may be −1 and is worked out. A view where strides
/// allow, else a copy. Throws: ShapeError unless the counts agree.
Tensor reshape(const Arg& x, const Shape& shape);
/// The same, always a view. Throws: ShapeError unless the counts agree and x's strides allow it. Source: PyTorch's view.
Tensor view(const Arg& x, const Shape& shape);
/// Axes first to last made into one, as reshape; a number gives a vector. Throws: ShapeError if `last` lies before `first`.
/// Source: PyTorch's flatten.
Tensor flatten(const Arg& x, int first = 0, int last = -1);
/// A view with two axes exchanged.
Tensor transpose(const Arg& x, int first = -2, int second = -1);
/// A view with axis i taken from x's axis `axes[i]`. Throws: ShapeError unless `axes` is a permutation.
Tensor permute(const Arg& x, const Shape& axes);
/// A view in which axes of size 1, and new axes in front, repeat their elements. −1 keeps a size.
/// Throws: ShapeError if x does not broadcast to that shape.
Tensor expand(const Arg& x, const Shape& shape);

/// A view with axes of size 1 put in, at these places of the result. Throws: ShapeError if one is named twice, or there
/// would be more than 8. Source: NumPy's expand_dims.
Tensor unsqueeze(const Arg& x, const Shape& axes);
template <std::integral Axis>
Tensor unsqueeze(const Arg& x, Axis axis) {
  return unsqueeze(x, Shape{static_cast<std::int64_t>(axis)});
}
/// A view without the axes of size 1.
Tensor squeeze(const Arg& x);
/// A view without these axes. Throws: ShapeError if the size of one is not 1, or one is named twice.
Tensor squeeze(const Arg& x, const Shape& axes);
template <std::integral Axis>
Tensor squeeze(const Arg& x, Axis axis) {
  return squeeze(x, Shape{static_cast<std::int64_t>(axis)});
}

/// A view of elements start, start + step, … before `stop`, along an axis. Ends beyond the tensor are cut, as in
/// Python; a negative step walks backwards.
/// Throws: ShapeError for a step of 0.
Tensor slice(const Arg& x, int axis, std::int64_t start, std::int64_t stop = std::numeric_limits<std::int64_t>::max(),
             std::int64_t step = 1);
/// A view of element `index` along an axis, which is dropped. Throws: IndexError if it is out of range.
Tensor select(const Arg& x, int axis, std::int64_t index);
/// Views of `size` elements each along an axis, the last one shorter if they do not come out even.
/// Throws: ShapeError unless the size is positive.
std::vector<Tensor> split(const Arg& x, std::int64_t size, int axis = 0);
/// Views of the given sizes along an axis. Throws: ShapeError unless they add up.
std::vector<Tensor> split(const Arg& x, const std::vector<std::int64_t>& sizes, int axis = 0);
/// Views of ⌈size / count⌉ elements each along an axis, the last one shorter: at most `count`, fewer if they are all used
/// up before; of an axis of size 0, `count` empty ones. Throws: ShapeError unless count is positive.
/// Source: PyTorch's chunk.
std::vector<Tensor> chunk(const Arg& x, std::int64_t count, int axis = 0);
/// A view with the elements along each axis in reverse. Throws: ShapeError if an axis is named twice.
Tensor flip(const Arg& x);
Tensor flip(const Arg& x, const Shape& axes);
template <std::integral Axis>
Tensor flip(const Arg& x, Axis axis) {
  return flip(x, Shape{static_cast<std::int64_t>(axis)});
}

/// The tensors one behind the other along an axis, in the dtype where all meet. Throws: ShapeError unless the other sizes
/// agree, or for no tensors.
Tensor concat(std::span<const Tensor> tensors, int axis = 0, Location where = Location::here());
inline Tensor concat(std::initializer_list<Tensor> tensors, int axis = 0, Location where = Location::here()) {
  return concat(std::span(tensors.begin(), tensors.size()), axis, where);
}
/// The tensors, all of one shape, side by side along a new axis, in the dtype where all meet.
/// Throws: ShapeError unless all have one shape, of less than 8 axes, or for no tensors.
Tensor stack(std::span<const Tensor> tensors, int axis = 0, Location where = Location::here());
inline Tensor stack(std::initializer_list<Tensor> tensors, int axis = 0, Location where = Location::here()) {
  return stack(std::span(tensors.begin(), tensors.size()), axis, where);
}

/// Elements moved on by `shift` places along an axis; those that leave at the end come in at the start.
/// Of several axes, each has its own shift. Throws: ShapeError unless there are as many shifts as axes.
/// Source: NumPy's roll.
Tensor roll(const Arg& x, const Shape& shifts, const Shape& axes);
template <std::integral Axis>
Tensor roll(const Arg& x, std::int64_t shift, Axis axis) {
  return roll(x, Shape{shift}, Shape{static_cast<std::int64_t>(axis)});
}
/// x laid side by side, repetitions[i] times along axis i. Missing axes are put in front: of x with size 1, of
/// `repetitions` with 1. Throws: ShapeError for a negative number. Source: NumPy's tile.
Tensor tile(const Arg& x, const Shape& repetitions);
/// Each element `count` times in a row along an axis. Throws: ShapeError for a negative count. Source: NumPy's repeat.
Tensor repeat(const Arg& x, std::int64_t count, int axis);
/// Element i along an axis counts[i] times. Throws: ShapeError unless there is a count, not negative, for each.
Tensor repeat(const Arg& x, const std::vector<std::int64_t>& counts, int axis);

/// x on and below a diagonal of the last two axes, 0 above; 0 is the main diagonal, 1 the one above it, −1 the one below.
/// Throws: ShapeError for fewer than two axes.
Tensor tril(const Arg& x, std::int64_t diagonal = 0);
/// x on and above a diagonal of the last two axes, 0 below. Throws: ShapeError for fewer than two axes.
Tensor triu(const Arg& x, std::int64_t diagonal = 0);
/// Of a vector, a square matrix with it on a diagonal, zeros elsewhere; of a matrix, a view of a diagonal, empty if there
/// is no such one. Throws: ShapeError for other ranks. Source: NumPy's diag.
Tensor diag(const Arg& x, std::int64_t diagonal = 0);

/// The same elements in row-major order: a view if x is contiguous, else a copy.
Tensor contiguous(const Arg& x);
/// A contiguous copy.
Tensor copy(const Arg& x);

}  // namespace reel
