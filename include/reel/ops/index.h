#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include <reel/tensor.h>

/// \file
/// Indexing by tensors. Indices are i32 or i64; negative ones count from the end. An index out of range is an
/// IndexError, thrown before anything is read or written. Masks are bool. A `source` or `value` is a tensor of x's
/// dtype or a number that it can hold.

namespace reel {

/// y[…, j, …] = x[…, index[…, j, …], …] along `axis`. `index` has x's rank, and off that axis sizes up to x's. The
/// gradient of an element that is read several times is summed.
/// Throws: IndexError for an index out of range; DTypeError for indices other than i32 or i64; ShapeError for an index
/// of another rank or larger sizes, and for an axis that does not exist; DeviceError.
/// Source: PyTorch's gather.
Tensor gather(const Arg& x, int axis, const Arg& index);

/// A copy of x with x[…, index[…, j, …], …] = source[…, j, …] along `axis`. `index` has x's rank, and off that axis
/// sizes up to x's; the source has its shape, or is a number. The last of several elements for one position, in
/// row-major order, is taken, and it alone has a gradient.
/// Throws: IndexError for an index out of range; DTypeError for indices other than i32 or i64, and for a source that is
/// not of x's dtype; ShapeError for shapes that do not fit, and for an axis that does not exist; DeviceError.
/// Source: PyTorch's scatter.
Tensor scatter(const Arg& x, int axis, const Arg& index, const Arg& source);

/// A copy of x with updates[…, j, …] added to x[…, index[…, j, …], …] along `axis`: the transpose of gather. `index`
/// has x's rank, and off that axis sizes up to x's; the updates have its shape.
/// Throws: IndexError for an index out of range; DTypeError for indices other than i32 or i64, and for updates that are
/// not of x's dtype; ShapeError for shapes that do not fit, and for an axis that does not exist; DeviceError.
/// Source: PyTorch's scatter_add.
Tensor scatter_add(const Arg& x, int axis, const Arg& index, const Arg& updates);

/// Elements of x, flattened, in the shape of the indices.
/// Throws: IndexError for an index out of range; DTypeError for indices other than i32 or i64; DeviceError.
/// Source: NumPy's take.
Tensor take(const Arg& x, const Arg& indices);
/// y[…, j, …] = x[…, indices[j], …]: the axes of the indices, any number of them, replace `axis`.
/// Throws: IndexError for an index out of range; DTypeError for indices other than i32 or i64; ShapeError if the result
/// would have more than 8 axes, and for an axis that does not exist; DeviceError.
/// Source: NumPy's take.
Tensor take(const Arg& x, const Arg& indices, int axis);
/// y[…, j, …] = x[…, index[j], …] along `axis`: index (J).
/// Throws: IndexError for an index out of range; DTypeError for indices other than i32 or i64; ShapeError unless the
/// index is a vector, and for an axis that does not exist; DeviceError.
/// Source: PyTorch's index_select.
Tensor index_select(const Arg& x, int axis, const Arg& index);

/// A copy of x with source[…, j, …] added to x[…, index[j], …] along `axis`. index (J); the source has x's shape except
/// for J along the axis.
/// Throws: IndexError for an index out of range; DTypeError for indices other than i32 or i64, and for a source that is
/// not of x's dtype; ShapeError for shapes that do not fit, and for an axis that does not exist; DeviceError.
/// Source: PyTorch's index_add.
Tensor index_add(const Arg& x, int axis, const Arg& index, const Arg& source);

/// A copy of x with x[…, index[j], …] = source[…, j, …] along `axis`. index (J); the source has x's shape except for J
/// along the axis. The last of several rows for one position is taken, and it alone has a gradient.
/// Throws: IndexError for an index out of range; DTypeError for indices other than i32 or i64, and for a source that is
/// not of x's dtype; ShapeError for shapes that do not fit, and for an axis that does not exist; DeviceError.
/// Source: PyTorch's index_copy.
Tensor index_copy(const Arg& x, int axis, const Arg& index, const Arg& source);

/// A copy of x with x[…, index[j], …] = value, a number or a tensor of rank 0, along `axis`. index (J).
/// Throws: IndexError for an index out of range; DTypeError for indices other than i32 or i64, and unless x can hold
/// the value; ShapeError for an index that is not a vector, for a value with axes, and for an axis that does not exist;
/// DeviceError.
/// Source: PyTorch's index_fill.
Tensor index_fill(const Arg& x, int axis, const Arg& index, const Arg& value);

/// How `scatter_reduce` combines the elements for one position; `amax` is the largest one, `amin` the smallest.
enum class ScatterReduction : std::uint8_t { sum, prod, mean, amax, amin };

/// Options of `scatter_reduce`.
struct ScatterReduceOptions {
  /// Whether x's element is combined with those of the source; otherwise it stays only where there are none. Default
  /// true.
  bool include_self = true;
};

/// A copy of x in which x[…, index[…, j, …], …] is combined with all source[…, j, …] for that position, along `axis`.
/// `index` has x's rank, and off that axis sizes up to x's; the source has its shape. The mean of integers is rounded
/// down. NaN is the largest and the smallest element. The gradient of `amax` and `amin` is shared evenly among equals,
/// and that of `prod` is exact with any number of zeros.
/// Throws: IndexError for an index out of range; DTypeError for indices other than i32 or i64, for a source that is not
/// of x's dtype, and for bools; ShapeError for shapes that do not fit, and for an axis that does not exist; DeviceError.
/// Source: PyTorch's scatter_reduce.
Tensor scatter_reduce(const Arg& x, int axis, const Arg& index, const Arg& source, ScatterReduction reduction,
                      ScatterReduceOptions options = {});

/// Options of `index_put` and `index_put_`.
struct IndexPutOptions {
  /// Adds to the elements instead of replacing them. Default false.
  bool accumulate = false;
};

/// A copy of x with x[i[j], k[j], …] = values[j], for one tensor of indices per leading axis; the indices broadcast
/// together to the shape of j, and the values to that shape and the remaining axes. The last of several values for one
/// position, in row-major order, is taken, and it alone has a gradient.
/// Throws: IndexError for an index out of range, and for no indices or more than axes; DTypeError for indices other
/// than i32 or i64, and for values of another dtype than x; ShapeError for shapes that do not fit; DeviceError.
/// Source: PyTorch's index_put.
Tensor index_put(const Arg& x, std::span<const Tensor> indices, const Arg& values, IndexPutOptions options = {});
/// A copy of x with x[i[j], k[j], …] = values[j], for one tensor of indices per leading axis; the indices broadcast
/// together to the shape of j, and the values to that shape and the remaining axes. The last of several values for one
/// position, in row-major order, is taken, and it alone has a gradient.
/// Throws: IndexError for an index out of range, and for no indices or more than axes; DTypeError for indices other
/// than i32 or i64, and for values of another dtype than x; ShapeError for shapes that do not fit; DeviceError.
/// Source: PyTorch's index_put.
inline Tensor index_put(const Arg& x, std::initializer_list<Tensor> indices, const Arg& values,
                        IndexPutOptions options = {}) {
  return index_put(x, std::span(indices.begin(), indices.size()), values, options);
}

/// y_s = Σ x_n over all n with segment_ids[n] = s or s − segments, for s below `segments`: x (N, …), segment_ids (N) →
/// (segments, …).
/// Throws: IndexError for an id outside [−segments, segments); DTypeError for ids other than i32 or i64; ShapeError unless
/// there is an id for each row of x, and for a negative number of segments; DeviceError.
/// Source: JAX's segment_sum.
Tensor segment_sum(const Arg& x, const Arg& segment_ids, std::int64_t segments);

/// A copy of x with `value`, a number or a tensor of rank 0, where the mask is true; the mask broadcasts to x's shape.
/// Throws: DTypeError unless the mask is bool and x can hold the value; ShapeError unless the mask broadcasts to x, and
/// for a value with axes; DeviceError.
/// Source: PyTorch's masked_fill.
Tensor masked_fill(const Arg& x, const Arg& mask, const Arg& value);

/// A copy of x in which the elements where the mask is true are replaced by the first elements of the source, both in
/// row-major order; the mask broadcasts to x's shape.
/// Throws: DTypeError unless the mask is bool, and for a source that is not of x's dtype; ShapeError unless the mask
/// broadcasts to x, and if the source has fewer elements than are replaced; DeviceError.
/// Source: PyTorch's masked_scatter.
Tensor masked_scatter(const Arg& x, const Arg& mask, const Arg& source);

/// The elements of x where the mask is true, in row-major order, as a vector; x and mask broadcast together.
/// Throws: DTypeError unless the mask is bool; ShapeError unless the shapes broadcast; DeviceError.
/// Source: PyTorch's masked_select.
Tensor masked_select(const Arg& x, const Arg& mask);

/// The indices of the n elements that are not 0, in row-major order: (n, rank of x), i64. No gradient.
/// Source: PyTorch's nonzero.
Tensor nonzero(const Arg& x);

}  // namespace reel
