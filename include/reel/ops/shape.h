#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <reel/tensor.h>

// Negative axes and indices count from the end. What is called a view shares its elements with x.

namespace reel {

/// The elements in row-major order under another shape; one size may be −1 and is worked out. A view where strides
/// allow, else a copy. Throws: ShapeError unless the counts agree.
Tensor reshape(const Arg& x, const Shape& shape);
/// A view with two axes exchanged.
Tensor transpose(const Arg& x, int first = -2, int second = -1);
/// A view with axis i taken from x's axis `axes[i]`. Throws: ShapeError unless `axes` is a permutation.
Tensor permute(const Arg& x, const Shape& axes);
/// A view in which axes of size 1, and new axes in front, repeat their elements. −1 keeps a size.
Tensor expand(const Arg& x, const Shape& shape);
/// A view of elements start, start + step, … before `stop`, along an axis. Ends beyond the tensor are cut, as in
/// Python; a negative step walks backwards.
/// Throws: ShapeError for a step of 0.
Tensor slice(const Arg& x, int axis, std::int64_t start, std::int64_t stop = std::numeric_limits<std::int64_t>::max(),
             std::int64_t step = 1);
/// A view of element `index` along an axis, which is dropped. Throws: IndexError if it is out of range.
Tensor select(const Arg& x, int axis, std::int64_t index);
/// Views of `size` elements each along an axis, the last one shorter if they do not come out even.
std::vector<Tensor> split(const Arg& x, std::int64_t size, int axis = 0);
/// Views of the given sizes along an axis. Throws: ShapeError unless they add up.
std::vector<Tensor> split(const Arg& x, const std::vector<std::int64_t>& sizes, int axis = 0);
/// A view with an axis of size 1 put in before `axis`.
Tensor unsqueeze(const Arg& x, int axis);
/// A view without an axis of size 1. Throws: ShapeError if its size is not 1.
Tensor squeeze(const Arg& x, int axis);

/// The tensors one behind the other along an axis. Throws: ShapeError unless the other sizes agree, or for no tensors.
Tensor concat(std::span<const Tensor> tensors, int axis = 0, Location where = Location::here());
inline Tensor concat(std::initializer_list<Tensor> tensors, int axis = 0, Location where = Location::here()) {
  return concat(std::span(tensors.begin(), tensors.size()), axis, where);
}
/// The tensors, all of one shape, side by side along a new axis.
Tensor stack(std::span<const Tensor> tensors, int axis = 0, Location where = Location::here());
inline Tensor stack(std::initializer_list<Tensor> tensors, int axis = 0, Location where = Location::here()) {
  return stack(std::span(tensors.begin(), tensors.size()), axis, where);
}

/// The same elements in row-major order: x itself if it is contiguous, else a copy.
Tensor contiguous(const Arg& x);
/// A contiguous copy.
Tensor copy(const Arg& x);

}  // namespace reel
