#pragma once

#include <initializer_list>
#include <span>

#include <reel/indexing.h>
#include <reel/tensor.h>

/// \file
/// Reductions: each over all elements, or over those along the given axes.

namespace reel {

/// The axes along which a reduction runs: one, a list, or all of them. Negative ones count from the end.
class Axes {
 public:
  /// Chooses the constructor of `all_axes`.
  struct All {
    /// Keeps `{}` from being read as all axes.
    explicit All() = default;
  };
  /// All axes of the tensor that is reduced.
  explicit constexpr Axes(All) : all_(true) {}
  /// One axis.
  template <detail::IndexInteger T>
  Axes(T axis) : list_{detail::index_number(axis)} {}
  /// A list of axes: `sum(x, {0, 1})`. An empty one leaves each element alone. Throws: Error if there are more than 8.
  Axes(std::initializer_list<std::int64_t> axes, Location where = Location::here()) : list_(axes, where) {}
  /// A list of axes. An empty one leaves each element alone. Throws: Error if there are more than 8.
  Axes(std::span<const std::int64_t> axes, Location where = Location::here()) : list_(axes, where) {}
  /// A list of axes. An empty one leaves each element alone.
  Axes(const Shape& axes) : list_(axes) {}

  /// The list of axes; null if they are all.
  const Shape* list() const { return all_ ? nullptr : &list_; }

 private:
  Shape list_;
  bool all_ = false;
};

/// All axes of a tensor.
inline constexpr Axes all_axes{Axes::All{}};

/// Options of reductions.
struct ReduceOptions {
  /// Keeps `sum(x, {1})`, where 1 is an axis, from being read as options.
  struct ByName {
    /// Only the default of `by_name` is made by it.
    explicit ByName() = default;
  } by_name{};  ///< not to be set: keeps a braced list of axes from being read as options
  /// Whether reduced axes stay, with size 1. Default false.
  bool keepdims = false;
};

/// The sum Σ x over the given axes, by default all; 0 of no elements. Integers and bools give i64. Floating sums are
/// compensated: their error does not grow with the number of terms.
/// Throws: ShapeError if an axis does not exist or is named twice.
Tensor sum(const Arg& x, const Axes& axes = all_axes, ReduceOptions options = {});
/// The mean Σ x / n over the given axes, by default all; NaN of no elements.
/// Throws: ShapeError if an axis does not exist or is named twice; DTypeError unless floating.
Tensor mean(const Arg& x, const Axes& axes = all_axes, ReduceOptions options = {});
/// The product Π x over the given axes, by default all; 1 of no elements. Integers and bools give i64. The gradient is
/// exact with any number of zeros among the factors.
/// Throws: ShapeError if an axis does not exist or is named twice.
Tensor prod(const Arg& x, const Axes& axes = all_axes, ReduceOptions options = {});

/// The largest element over the given axes, by default all; NaN if one is NaN. The gradient is shared evenly among equal
/// largest elements.
/// Throws: ShapeError if an axis does not exist or is named twice, and for the largest of no elements.
/// Source: PyTorch's amax.
Tensor max(const Arg& x, const Axes& axes = all_axes, ReduceOptions options = {});
/// The smallest element over the given axes, by default all; NaN if one is NaN. The gradient is shared evenly among
/// equal smallest elements.
/// Throws: ShapeError if an axis does not exist or is named twice, and for the smallest of no elements.
/// Source: PyTorch's amin.
Tensor min(const Arg& x, const Axes& axes = all_axes, ReduceOptions options = {});
/// The index of the largest element along one axis, or by default over all elements in row-major order, as i64. The
/// first of equals; that of the first NaN if there is one. No gradient.
/// Throws: ShapeError if the axis does not exist, for a list of other than one axis, and for the largest of no elements.
Tensor argmax(const Arg& x, const Axes& axis = all_axes, ReduceOptions options = {});
/// The index of the smallest element along one axis, or by default over all elements in row-major order, as i64. The
/// first of equals; that of the first NaN if there is one. No gradient.
/// Throws: ShapeError if the axis does not exist, for a list of other than one axis, and for the smallest of no elements.
Tensor argmin(const Arg& x, const Axes& axis = all_axes, ReduceOptions options = {});

/// Whether an element over the given axes, by default all, is not 0, as bool; NaN is not 0. False of no elements.
/// Throws: ShapeError if an axis does not exist or is named twice.
Tensor any(const Arg& x, const Axes& axes = all_axes, ReduceOptions options = {});
/// Whether no element over the given axes, by default all, is 0, as bool; NaN is not 0. True of no elements.
/// Throws: ShapeError if an axis does not exist or is named twice.
Tensor all(const Arg& x, const Axes& axes = all_axes, ReduceOptions options = {});
/// The number of elements over the given axes, by default all, that are not 0, as i64; NaN is not 0.
/// Throws: ShapeError if an axis does not exist or is named twice.
Tensor count_nonzero(const Arg& x, const Axes& axes = all_axes, ReduceOptions options = {});

/// The sum of the main diagonal of the matrices in the last two axes: (…, M, N) → (…). Integers and bools give i64.
/// Throws: ShapeError for fewer than two axes.
/// Source: PyTorch's trace, for several matrices.
Tensor trace(const Arg& x);

/// Sums over the axes along which a tensor of `shape` would be broadcast to x's, so that the result has that shape: the
/// transpose of broadcasting. A copy of x where there are none.
/// Throws: ShapeError if `shape` does not broadcast to x's.
Tensor sum_to(const Arg& x, const Shape& shape);

/// log Σ e^x over the given axes, by default all, without overflow; −∞ of no elements. Where all elements are −∞ the
/// gradient is 0, and elements that are +∞ share it evenly. Integers and bools give f32.
/// Throws: ShapeError if an axis does not exist or is named twice.
/// Source: SciPy's logsumexp.
Tensor logsumexp(const Arg& x, const Axes& axes = all_axes, ReduceOptions options = {});

// Options without axes, such as sum(x, {.keepdims = true}): a braced list with names is that of an aggregate only.

/// `sum` over all axes.
inline Tensor sum(const Arg& x, ReduceOptions options) { return sum(x, all_axes, options); }
/// `mean` over all axes.
inline Tensor mean(const Arg& x, ReduceOptions options) { return mean(x, all_axes, options); }
/// `prod` over all axes.
inline Tensor prod(const Arg& x, ReduceOptions options) { return prod(x, all_axes, options); }
/// `max` over all axes.
inline Tensor max(const Arg& x, ReduceOptions options) { return max(x, all_axes, options); }
/// `min` over all axes.
inline Tensor min(const Arg& x, ReduceOptions options) { return min(x, all_axes, options); }
/// `argmax` over all axes.
inline Tensor argmax(const Arg& x, ReduceOptions options) { return argmax(x, all_axes, options); }
/// `argmin` over all axes.
inline Tensor argmin(const Arg& x, ReduceOptions options) { return argmin(x, all_axes, options); }
/// `any` over all axes.
inline Tensor any(const Arg& x, ReduceOptions options) { return any(x, all_axes, options); }
/// `all` over all axes.
inline Tensor all(const Arg& x, ReduceOptions options) { return all(x, all_axes, options); }
/// `count_nonzero` over all axes.
inline Tensor count_nonzero(const Arg& x, ReduceOptions options) { return count_nonzero(x, all_axes, options); }
/// `logsumexp` over all axes.
inline Tensor logsumexp(const Arg& x, ReduceOptions options) { return logsumexp(x, all_axes, options); }

}  // namespace reel
