#pragma once

#include <reel/tensor.h>

// Indices are i32 or i64; negative ones count from the end. One out of range is an IndexError, thrown before anything
// is read.

namespace reel {

/// y[…, j, …] = x[…, index[…, j, …], …] along `axis`. `index` has x's rank, and off that axis sizes up to x's.
/// The gradient of an element that is read several times is summed.
/// Source: PyTorch's gather.
Tensor gather(const Arg& x, int axis, const Arg& index);

/// `x` with `updates` added at `index` along `axis`: the transpose of gather.
/// Source: PyTorch's scatter_add.
Tensor scatter_add(const Arg& x, int axis, const Arg& index, const Arg& updates);

/// Rows of a table: table (V, D), indices (…) → (…, D).
Tensor embedding(const Arg& table, const Arg& indices);

}  // namespace reel
