#pragma once

#include <initializer_list>
#include <span>

#include <reel/tensor.h>

// Indices are i32 or i64; negative ones count from the end. One out of range is an IndexError, thrown before anything
// is read or written. Masks are bool. A `source` or `value` is a tensor of x's dtype or a number that it can hold.
// All throw ShapeError for shapes that do not fit and axes that do not exist, DTypeError for other dtypes.

namespace reel {

/// y[…, j, …] = x[…, index[…, j, …], …] along `axis`. `index` has x's rank, and off that axis sizes up to x's.
/// The gradient of an element that is read several times is summed.
/// Source: PyTorch's gather.
Tensor gather(const Arg& x, int axis, const Arg& index);

/// `x` with x[…, index[…, j, …], …] = source[…, j, …] along `axis`. `index` as for gather; the source has its shape, or
/// is a number. Of several elements for one place the last in row-major order is taken, and it alone has a gradient.
/// Source: PyTorch's scatter.
Tensor scatter(const Arg& x, int axis, const Arg& index, const Arg& source);

/// `x` with `updates` added at `index` along `axis`: the transpose of gather.
/// Source: PyTorch's scatter_add.
Tensor scatter_add(const Arg& x, int axis, const Arg& index, const Arg& updates);

struct EmbeddingOptions {
  /// `Tape::backward` puts the gradient of a table that is a parameter into its row_grad(): only the rows that were read,
  /// which optimisers then change without touching others. Uses that add up keep to rows; together with a gradient that
  /// is dense, and for `Tape::gradient`, the whole is dense.
  bool row_gradient = false;
};

/// Rows of a table: table (V, D), indices (…) → (…, D).
Tensor embedding(const Arg& table, const Arg& indices, EmbeddingOptions options = {});

/// Elements of x, flattened, in the shape of the indices.
/// Source: NumPy's take.
Tensor take(const Arg& x, const Arg& indices);
/// y[…, j, …] = x[…, indices[j], …]: the axes of the indices, of which there may be any number, stand in the place of
/// `axis`. Throws: ShapeError if the result would have more than 8 axes.
Tensor take(const Arg& x, const Arg& indices, int axis);
/// The same with a vector of indices.
/// Source: PyTorch's index_select.
Tensor index_select(const Arg& x, int axis, const Arg& index);

/// `x` with source[…, j, …] added to x[…, index[j], …] along `axis`. index (J); the source has x's shape but for J.
/// Source: PyTorch's index_add.
Tensor index_add(const Arg& x, int axis, const Arg& index, const Arg& source);

struct IndexPutOptions {
  /// Adds to what is there.
  bool accumulate = false;
};

/// `x` with x[i[j], k[j], …] = values[j], for one tensor of indices per leading axis; the indices broadcast together to
/// the shape of j, and the values to that shape and the axes left over. Of several values for one place the last in
/// row-major order is taken, and it alone has a gradient.
/// Source: PyTorch's index_put.
Tensor index_put(const Arg& x, std::span<const Tensor> indices, const Arg& values, IndexPutOptions options = {});
inline Tensor index_put(const Arg& x, std::initializer_list<Tensor> indices, const Arg& values,
                        IndexPutOptions options = {}) {
  return index_put(x, std::span(indices.begin(), indices.size()), values, options);
}

/// y_s = Σ x_n over all n with segment_ids[n] = s, for s below `segments`: x (N, …), segment_ids (N) → (segments, …).
/// Throws: ShapeError unless the sizes agree.
/// Source: JAX's segment_sum.
Tensor segment_sum(const Arg& x, const Arg& segment_ids, std::int64_t segments);

/// `x` with `value`, a number or a tensor of rank 0, where the mask is true; the mask broadcasts to x's shape.
/// Source: PyTorch's masked_fill.
Tensor masked_fill(const Arg& x, const Arg& mask, const Arg& value);

/// The elements of x where the mask is true, in row-major order, as a vector; the two broadcast together.
/// Source: PyTorch's masked_select.
Tensor masked_select(const Arg& x, const Arg& mask);

/// The indices of the n elements that are not 0, in row-major order: (n, rank of x), i64.
/// Source: PyTorch's nonzero.
Tensor nonzero(const Arg& x);

}  // namespace reel
