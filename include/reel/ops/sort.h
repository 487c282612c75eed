#pragma once

#include <reel/tensor.h>

// NaN counts as larger than every number, and -0 as equal to 0. Bools are ordered too: false < true.

namespace reel {

/// Elements of a tensor and their places along an axis (i64).
struct ValuesAndIndices {
  Tensor values, indices;
};

struct SortOptions {
  /// The largest first.
  bool descending = false;
};

/// The elements in ascending order along an axis, each with the place that it had: values = gather(x, axis, indices).
/// Equal elements keep their order, in both directions (NumPy's stable sort); NaN comes last, or first if descending.
/// The gradient of a value goes to its place in x. Throws: ShapeError if there is no such axis.
/// Source: PyTorch's sort.
ValuesAndIndices sort(const Arg& x, int axis = -1, SortOptions options = {});

/// The indices of `sort` alone.
/// Source: NumPy's argsort with kind="stable".
Tensor argsort(const Arg& x, int axis = -1, SortOptions options = {});

struct TopKOptions {
  /// Else the smallest.
  bool largest = true;
};

/// The k largest elements along an axis, the largest first: what `sort` in that direction starts with.
/// Throws: ShapeError if there is no such axis, or fewer than k elements along it.
/// Source: PyTorch's topk.
ValuesAndIndices topk(const Arg& x, std::int64_t k, int axis = -1, TopKOptions options = {});

struct SearchSortedOptions {
  /// Behind elements that are equal, not before them.
  bool right = false;
};

/// Where each value would have to be put in so that a sorted vector stays sorted: in front of the first element that is
/// not smaller. sorted (N) and values of any shape, or sorted (…, N) and values (…, M) with one row for each; i64 in the
/// shape of the values. Throws: ShapeError unless they fit.
/// Source: NumPy's searchsorted; PyTorch's for several rows.
Tensor searchsorted(const Arg& sorted, const Arg& values, SearchSortedOptions options = {});

}  // namespace reel
