#pragma once

#include <reel/ops/convolution.h>
#include <reel/ops/layout.h>
#include <reel/ops/sort.h>
#include <reel/tensor.h>

/// \file
/// Pooling: each result is computed from a window of x along its one, two or three spatial axes: x: (N, C, d…), or (N,
/// d…, C) with Layout::nhwc. Windows may be wider than the stride, and are cut off at the ends of x and its padding.

namespace reel {

/// Options of `max_pool1d`, `max_pool2d` and `max_pool3d`.
struct MaxPoolOptions {
  /// Elements of x from one window to the next; 0 (default): the size of the window.
  AxisNumbers stride = 0;
  /// Elements around x that are never the largest: numbers of at most half a window, or a Padding rule. Default 0.
  ConvolutionPadding padding = 0;
  /// Elements of x from one element of the window to the next; at least 1. Default 1.
  AxisNumbers dilation = 1;
  /// Whether a remainder at the end makes another window, provided that it starts within x or the padding before it.
  /// Default false.
  bool ceil_mode = false;
  Layout layout = Layout::nchw;  ///< where the channels of x are; default (N, C, d…)
};

/// The largest element of each window along one spatial axis: y_o = max_k x_(o · stride + k · dilation − padding); NaN
/// if one is NaN: x: (N, C, L), or (N, L, C) with Layout::nhwc → (N, C, o…) in the layout of x, o = floor((d + 2
/// padding − dilation (window − 1) − 1) / stride) + 1, or ceil(…) + 1 in ceil_mode, for each axis of size d. The
/// gradient flows to the first of several largest ones.
/// Throws: DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, windows that do
/// not fit, and options out of range.
/// Source: PyTorch's max_pool1d; TensorFlow for Padding::same and Padding::valid.
Tensor max_pool1d(const Arg& x, const AxisNumbers& window, const MaxPoolOptions& options = {});
/// The largest element of each window along two spatial axes: y_o = max_k x_(o · stride + k · dilation − padding); NaN
/// if one is NaN: x: (N, C, H, W), or (N, H, W, C) with Layout::nhwc → (N, C, o…) in the layout of x, o = floor((d + 2
/// padding − dilation (window − 1) − 1) / stride) + 1, or ceil(…) + 1 in ceil_mode, for each axis of size d. The
/// gradient flows to the first of several largest ones.
/// Throws: DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, windows that do
/// not fit, and options out of range.
/// Source: PyTorch's max_pool2d; TensorFlow for Padding::same and Padding::valid.
Tensor max_pool2d(const Arg& x, const AxisNumbers& window, const MaxPoolOptions& options = {});
/// The largest element of each window along three spatial axes: y_o = max_k x_(o · stride + k · dilation − padding);
/// NaN if one is NaN: x: (N, C, D, H, W), or (N, D, H, W, C) with Layout::nhwc → (N, C, o…) in the layout of x, o =
/// floor((d + 2 padding − dilation (window − 1) − 1) / stride) + 1, or ceil(…) + 1 in ceil_mode, for each axis of size
/// d. The gradient flows to the first of several largest ones.
/// Throws: DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, windows that do
/// not fit, and options out of range.
/// Source: PyTorch's max_pool3d; TensorFlow for Padding::same and Padding::valid.
Tensor max_pool3d(const Arg& x, const AxisNumbers& window, const MaxPoolOptions& options = {});

/// The largest element of each window along one spatial axis: y_o = max_k x_(o · stride + k · dilation − padding); NaN
/// if one is NaN: x: (N, C, L), or (N, L, C) with Layout::nhwc → (N, C, o…) in the layout of x, o = floor((d + 2
/// padding − dilation (window − 1) − 1) / stride) + 1, or ceil(…) + 1 in ceil_mode, for each axis of size d. The
/// gradient flows to the first of several largest ones. The indices, of i64, count the elements along x's spatial axes
/// in row-major order.
/// Throws: DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, windows that do
/// not fit, and options out of range.
/// Source: PyTorch's max_pool1d; TensorFlow for Padding::same and Padding::valid.
ValuesAndIndices max_pool1d_with_indices(const Arg& x, const AxisNumbers& window, const MaxPoolOptions& options = {});
/// The largest element of each window along two spatial axes: y_o = max_k x_(o · stride + k · dilation − padding); NaN
/// if one is NaN: x: (N, C, H, W), or (N, H, W, C) with Layout::nhwc → (N, C, o…) in the layout of x, o = floor((d + 2
/// padding − dilation (window − 1) − 1) / stride) + 1, or ceil(…) + 1 in ceil_mode, for each axis of size d. The
/// gradient flows to the first of several largest ones. The indices, of i64, count the elements along x's spatial axes
/// in row-major order.
/// Throws: DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, windows that do
/// not fit, and options out of range.
/// Source: PyTorch's max_pool2d; TensorFlow for Padding::same and Padding::valid.
ValuesAndIndices max_pool2d_with_indices(const Arg& x, const AxisNumbers& window, const MaxPoolOptions& options = {});
/// The largest element of each window along three spatial axes: y_o = max_k x_(o · stride + k · dilation − padding);
/// NaN if one is NaN: x: (N, C, D, H, W), or (N, D, H, W, C) with Layout::nhwc → (N, C, o…) in the layout of x, o =
/// floor((d + 2 padding − dilation (window − 1) − 1) / stride) + 1, or ceil(…) + 1 in ceil_mode, for each axis of size
/// d. The gradient flows to the first of several largest ones. The indices, of i64, count the elements along x's
/// spatial axes in row-major order.
/// Throws: DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, windows that do
/// not fit, and options out of range.
/// Source: PyTorch's max_pool3d; TensorFlow for Padding::same and Padding::valid.
ValuesAndIndices max_pool3d_with_indices(const Arg& x, const AxisNumbers& window, const MaxPoolOptions& options = {});

/// Options of `avg_pool1d`, `avg_pool2d` and `avg_pool3d`.
struct AveragePoolOptions {
  /// Elements of x from one window to the next; 0 (default): the size of the window.
  AxisNumbers stride = 0;
  /// Zeros around x: numbers of at most half a window, or a Padding rule. Default 0.
  ConvolutionPadding padding = 0;
  /// Whether a remainder at the end makes another window, provided that it starts within x or the padding before it.
  /// Default false.
  bool ceil_mode = false;
  /// Whether the zeros of the padding are counted in the divisor; those of Padding::same never are. Default true.
  bool count_include_pad = true;
  Layout layout = Layout::nchw;  ///< where the channels of x are; default (N, C, d…)
};

/// The mean of each window along one spatial axis: y_o = Σ_k x_(o · stride + k − padding) / count: x: (N, C, L), or (N,
/// L, C) with Layout::nhwc → (N, C, o…) in the layout of x, o = floor((d + 2 padding − window) / stride) + 1, or
/// ceil(…) + 1 in ceil_mode, for each axis of size d.
/// Throws: DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, windows that do
/// not fit, and options out of range.
/// Source: PyTorch's avg_pool1d; TensorFlow for Padding::same and Padding::valid.
Tensor avg_pool1d(const Arg& x, const AxisNumbers& window, const AveragePoolOptions& options = {});
/// The mean of each window along two spatial axes: y_o = Σ_k x_(o · stride + k − padding) / count: x: (N, C, H, W), or
/// (N, H, W, C) with Layout::nhwc → (N, C, o…) in the layout of x, o = floor((d + 2 padding − window) / stride) + 1, or
/// ceil(…) + 1 in ceil_mode, for each axis of size d.
/// Throws: DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, windows that do
/// not fit, and options out of range.
/// Source: PyTorch's avg_pool2d; TensorFlow for Padding::same and Padding::valid.
Tensor avg_pool2d(const Arg& x, const AxisNumbers& window, const AveragePoolOptions& options = {});
/// The mean of each window along three spatial axes: y_o = Σ_k x_(o · stride + k − padding) / count: x: (N, C, D, H,
/// W), or (N, D, H, W, C) with Layout::nhwc → (N, C, o…) in the layout of x, o = floor((d + 2 padding − window) /
/// stride) + 1, or ceil(…) + 1 in ceil_mode, for each axis of size d.
/// Throws: DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, windows that do
/// not fit, and options out of range.
/// Source: PyTorch's avg_pool3d; TensorFlow for Padding::same and Padding::valid.
Tensor avg_pool3d(const Arg& x, const AxisNumbers& window, const AveragePoolOptions& options = {});

/// Options of `adaptive_avg_pool1d`, `adaptive_max_pool1d` and their forms for more axes.
struct AdaptivePoolOptions {
  Layout layout = Layout::nchw;  ///< where the channels of x are; default (N, C, d…)
};

/// The mean of each of `results` parts of x along one spatial axis: part o of an axis of d elements goes from floor(o d
/// / results) to ceil((o + 1) d / results), so that neighbours may overlap: x: (N, C, L), or (N, L, C) with
/// Layout::nhwc → (N, C, results…) in the layout of x.
/// Throws: DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, and results
/// below 1.
/// Source: PyTorch's adaptive_avg_pool1d.
Tensor adaptive_avg_pool1d(const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options = {});
/// The mean of each of `results` parts of x along two spatial axes: part o of an axis of d elements goes from floor(o d
/// / results) to ceil((o + 1) d / results), so that neighbours may overlap: x: (N, C, H, W), or (N, H, W, C) with
/// Layout::nhwc → (N, C, results…) in the layout of x.
/// Throws: DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, and results
/// below 1.
/// Source: PyTorch's adaptive_avg_pool2d.
Tensor adaptive_avg_pool2d(const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options = {});
/// The mean of each of `results` parts of x along three spatial axes: part o of an axis of d elements goes from floor(o
/// d / results) to ceil((o + 1) d / results), so that neighbours may overlap: x: (N, C, D, H, W), or (N, D, H, W, C)
/// with Layout::nhwc → (N, C, results…) in the layout of x.
/// Throws: DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, and results
/// below 1.
/// Source: PyTorch's adaptive_avg_pool3d.
Tensor adaptive_avg_pool3d(const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options = {});

/// The largest element of each of `results` parts of x along one spatial axis; NaN if one is NaN: part o of an axis of
/// d elements goes from floor(o d / results) to ceil((o + 1) d / results), so that neighbours may overlap: x: (N, C,
/// L), or (N, L, C) with Layout::nhwc → (N, C, results…) in the layout of x. The gradient flows to the first of several
/// largest ones.
/// Throws: DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, and results
/// below 1.
/// Source: PyTorch's adaptive_max_pool1d.
Tensor adaptive_max_pool1d(const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options = {});
/// The largest element of each of `results` parts of x along two spatial axes; NaN if one is NaN: part o of an axis of
/// d elements goes from floor(o d / results) to ceil((o + 1) d / results), so that neighbours may overlap: x: (N, C, H,
/// W), or (N, H, W, C) with Layout::nhwc → (N, C, results…) in the layout of x. The gradient flows to the first of
/// several largest ones.
/// Throws: DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, and results
/// below 1.
/// Source: PyTorch's adaptive_max_pool2d.
Tensor adaptive_max_pool2d(const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options = {});
/// The largest element of each of `results` parts of x along three spatial axes; NaN if one is NaN: part o of an axis
/// of d elements goes from floor(o d / results) to ceil((o + 1) d / results), so that neighbours may overlap: x: (N, C,
/// D, H, W), or (N, D, H, W, C) with Layout::nhwc → (N, C, results…) in the layout of x. The gradient flows to the
/// first of several largest ones.
/// Throws: DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, and results
/// below 1.
/// Source: PyTorch's adaptive_max_pool3d.
Tensor adaptive_max_pool3d(const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options = {});

/// The largest element of each of `results` parts of x along one spatial axis; NaN if one is NaN: part o of an axis of
/// d elements goes from floor(o d / results) to ceil((o + 1) d / results), so that neighbours may overlap: x: (N, C,
/// L), or (N, L, C) with Layout::nhwc → (N, C, results…) in the layout of x. The gradient flows to the first of several
/// largest ones. The indices, of i64, count the elements along x's spatial axes in row-major order.
/// Throws: DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, and results
/// below 1.
/// Source: PyTorch's adaptive_max_pool1d.
ValuesAndIndices adaptive_max_pool1d_with_indices(const Arg& x, const AxisNumbers& results,
                                                  AdaptivePoolOptions options = {});
/// The largest element of each of `results` parts of x along two spatial axes; NaN if one is NaN: part o of an axis of
/// d elements goes from floor(o d / results) to ceil((o + 1) d / results), so that neighbours may overlap: x: (N, C, H,
/// W), or (N, H, W, C) with Layout::nhwc → (N, C, results…) in the layout of x. The gradient flows to the first of
/// several largest ones. The indices, of i64, count the elements along x's spatial axes in row-major order.
/// Throws: DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, and results
/// below 1.
/// Source: PyTorch's adaptive_max_pool2d.
ValuesAndIndices adaptive_max_pool2d_with_indices(const Arg& x, const AxisNumbers& results,
                                                  AdaptivePoolOptions options = {});
/// The largest element of each of `results` parts of x along three spatial axes; NaN if one is NaN: part o of an axis
/// of d elements goes from floor(o d / results) to ceil((o + 1) d / results), so that neighbours may overlap: x: (N, C,
/// D, H, W), or (N, D, H, W, C) with Layout::nhwc → (N, C, results…) in the layout of x. The gradient flows to the
/// first of several largest ones. The indices, of i64, count the elements along x's spatial axes in row-major order.
/// Throws: DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, and results
/// below 1.
/// Source: PyTorch's adaptive_max_pool3d.
ValuesAndIndices adaptive_max_pool3d_with_indices(const Arg& x, const AxisNumbers& results,
                                                  AdaptivePoolOptions options = {});

/// Options of `max_unpool1d`, `max_unpool2d` and `max_unpool3d`.
struct MaxUnpoolOptions {
  Layout layout = Layout::nchw;  ///< where the channels of x are; default (N, C, d…)
};

/// The inverse of max_pool1d along one spatial axis: the values x of a pooling at the indices that
/// max_pool1d_with_indices gave, and zeros elsewhere: y at index_o is x_o, for x and indices (N, C, o…) → (N, C,
/// sizes…), or (N, o…, C) → (N, sizes…, C) with Layout::nhwc. Indices of i64 or i32 count the elements along y's
/// spatial axes in row-major order; negative ones from the end. The last of several x_o with one index is kept, and has
/// the gradient.
/// Throws: IndexError for an index out of range; ShapeError unless x and indices have one shape of that rank;
/// DTypeError unless x is floating and the indices i64 or i32; DeviceError.
/// Source: PyTorch's max_unpool1d.
Tensor max_unpool1d(const Arg& x, const Arg& indices, const AxisNumbers& sizes, MaxUnpoolOptions options = {});
/// The inverse of max_pool2d along two spatial axes: the values x of a pooling at the indices that
/// max_pool2d_with_indices gave, and zeros elsewhere: y at index_o is x_o, for x and indices (N, C, o…) → (N, C,
/// sizes…), or (N, o…, C) → (N, sizes…, C) with Layout::nhwc. Indices of i64 or i32 count the elements along y's
/// spatial axes in row-major order; negative ones from the end. The last of several x_o with one index is kept, and has
/// the gradient.
/// Throws: IndexError for an index out of range; ShapeError unless x and indices have one shape of that rank;
/// DTypeError unless x is floating and the indices i64 or i32; DeviceError.
/// Source: PyTorch's max_unpool2d.
Tensor max_unpool2d(const Arg& x, const Arg& indices, const AxisNumbers& sizes, MaxUnpoolOptions options = {});
/// The inverse of max_pool3d along three spatial axes: the values x of a pooling at the indices that
/// max_pool3d_with_indices gave, and zeros elsewhere: y at index_o is x_o, for x and indices (N, C, o…) → (N, C,
/// sizes…), or (N, o…, C) → (N, sizes…, C) with Layout::nhwc. Indices of i64 or i32 count the elements along y's
/// spatial axes in row-major order; negative ones from the end. The last of several x_o with one index is kept, and has
/// the gradient.
/// Throws: IndexError for an index out of range; ShapeError unless x and indices have one shape of that rank;
/// DTypeError unless x is floating and the indices i64 or i32; DeviceError.
/// Source: PyTorch's max_unpool3d.
Tensor max_unpool3d(const Arg& x, const Arg& indices, const AxisNumbers& sizes, MaxUnpoolOptions options = {});

}  // namespace reel
