#pragma once

#include <reel/tensor.h>

/// \file
/// Sorting and searching. NaN is treated as larger than every number, and −0 as equal to 0. Bools are ordered too:
/// false < true.

namespace reel {

/// Elements of a tensor and their indices along an axis.
struct ValuesAndIndices {
  Tensor values,  ///< the elements
      indices;    ///< their indices, i64
};

/// Options of `sort` and `argsort`.
struct SortOptions {
  /// Whether the largest element comes first. Default false.
  bool descending = false;
};

/// Sorts the elements along an axis, in ascending order by default, and gives the index that each had: values =
/// gather(x, axis, indices). Equal elements keep their order, in both directions; NaN is treated as larger than every
/// number. The gradient of a value goes to its position in x.
/// Throws: ShapeError if the axis does not exist.
/// Source: PyTorch's sort with stable=True.
ValuesAndIndices sort(const Arg& x, int axis = -1, SortOptions options = {});

/// The indices that sort x along an axis, in ascending order by default, as i64. Equal elements keep their order, in
/// both directions; NaN is treated as larger than every number. No gradient.
/// Throws: ShapeError if the axis does not exist.
/// Source: NumPy's argsort with kind="stable".
Tensor argsort(const Arg& x, int axis = -1, SortOptions options = {});

/// Options of `topk`.
struct TopKOptions {
  /// Whether the largest elements are found; else the smallest. Default true.
  bool largest = true;
};

/// The k largest elements along an axis, the largest first, or the k smallest, the smallest first, and their indices.
/// Equal elements keep their order; NaN is treated as larger than every number. The gradient of a value goes to
/// its position in x.
/// Throws: ShapeError if the axis does not exist, or has fewer than k elements.
/// Source: PyTorch's topk.
ValuesAndIndices topk(const Arg& x, std::int64_t k, int axis = -1, TopKOptions options = {});

/// Options of `kthvalue`.
struct KthValueOptions {
  /// Whether the axis stays, with size 1. Default false.
  bool keepdims = false;
};

/// The k-th smallest element along an axis, k in [1, size], and its index. Equal elements keep their order; NaN
/// is treated as larger than every number. The gradient of a value goes to its position in x.
/// Throws: ShapeError if the axis does not exist, or has fewer than k elements, and for a k below 1.
/// Source: PyTorch's kthvalue.
ValuesAndIndices kthvalue(const Arg& x, std::int64_t k, int axis = -1, KthValueOptions options = {});

/// The distinct elements of a tensor, or its distinct slices along an axis.
struct UniqueElements {
  Tensor values;   ///< the distinct elements in ascending order: (n); or slices: x's shape, with n along the axis
  Tensor inverse;  ///< the index in `values` of each element, in x's shape, or of each slice: (size of the axis); i64
  Tensor counts;   ///< (n), i64: how often each value occurs
};

/// The distinct elements of x, flattened, in ascending order. Every NaN is a value of its own, behind the numbers. No
/// gradient.
/// Throws: Error if x is undefined.
/// Source: PyTorch's unique.
UniqueElements unique(const Arg& x);
/// The distinct slices of x along an axis, in ascending order of their elements, of which the first that differs counts.
/// A slice with NaN equals no other. No gradient.
/// Throws: ShapeError if the axis does not exist.
/// Source: PyTorch's unique with dim.
UniqueElements unique(const Arg& x, int axis);

/// Options of `searchsorted` and `bucketize`.
struct SearchSortedOptions {
  /// Whether the index is behind equal elements, not before them. Default false.
  bool right = false;
};

/// The index at which each value would have to be inserted so that a sorted vector stays sorted: that of the first
/// element that is not smaller, with `right` of the first that is larger. sorted (N) and values of any shape, or sorted
/// (…, N) and values (…, M) with one row for each; i64 in the shape of the values.
/// Throws: ShapeError unless they fit; DeviceError.
/// Source: NumPy's searchsorted; PyTorch's for several rows.
Tensor searchsorted(const Arg& sorted, const Arg& values, SearchSortedOptions options = {});

/// The index of the bucket in which each element of x falls: i where boundaries[i − 1] < x ≤ boundaries[i], with `right`
/// where boundaries[i − 1] ≤ x < boundaries[i]. boundaries (N), ascending; i64 in x's shape, in [0, N]. No gradient.
/// Throws: ShapeError unless the boundaries are a vector; DeviceError.
/// Source: PyTorch's bucketize.
Tensor bucketize(const Arg& x, const Arg& boundaries, SearchSortedOptions options = {});

}  // namespace reel
