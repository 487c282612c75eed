#pragma once

#include <reel/ops/convolve.h>
#include <reel/ops/layout.h>
#include <reel/ops/sort.h>
#include <reel/tensor.h>

// Pooling: each result comes from a window of x along its one, two or three spatial axes: x: (N, C, d…), or (N, d…, C) with
// Layout::nhwc. Windows may be wider than the steps between them, and are cut off at the ends of x and its padding.
//
// All throw DTypeError unless x is floating; ShapeError for another rank, spatial axes without elements, or windows that do
// not fit; Error for options out of range.

namespace reel {

struct MaxPoolOptions {
  /// Elements of x from one window to the next; 0: as many as the window has.
  AxisNumbers stride = 0;
  /// Places around x that count for nothing; at most half a window.
  ConvolutionPadding padding = 0;
  /// Elements of x from one of the window's to the next.
  AxisNumbers dilation = 1;
  /// Whether what is left at the end makes another window, provided that it starts within x or the padding before it.
  bool ceil_mode = false;
  Layout layout = Layout::nchw;
};

/// y_o = max_k x_(o · stride + k · dilation − padding); NaN if one is NaN:
/// (N, C, d…) → (N, C, o…), o = floor((d + 2 padding − dilation (window − 1) − 1) / stride) + 1, or ceil(…) + 1 in
/// ceil_mode. The gradient flows to the first of several largest ones. Source: PyTorch; TensorFlow for Padding::same and
/// Padding::valid.
Tensor max_pool1d(const Arg& x, const AxisNumbers& window, const MaxPoolOptions& options = {});
Tensor max_pool2d(const Arg& x, const AxisNumbers& window, const MaxPoolOptions& options = {});
Tensor max_pool3d(const Arg& x, const AxisNumbers& window, const MaxPoolOptions& options = {});

/// The same, with indices of i64 that count the elements along x's spatial axes in row-major order.
ValuesAndIndices max_pool1d_with_indices(const Arg& x, const AxisNumbers& window, const MaxPoolOptions& options = {});
ValuesAndIndices max_pool2d_with_indices(const Arg& x, const AxisNumbers& window, const MaxPoolOptions& options = {});
ValuesAndIndices max_pool3d_with_indices(const Arg& x, const AxisNumbers& window, const MaxPoolOptions& options = {});

struct AveragePoolOptions {
  /// Elements of x from one window to the next; 0: as many as the window has.
  AxisNumbers stride = 0;
  /// Zeros around x; at most half a window.
  ConvolutionPadding padding = 0;
  /// As of MaxPoolOptions.
  bool ceil_mode = false;
  /// Whether the zeros of the padding are among what is divided by. Those of Padding::same never are.
  bool count_include_pad = true;
  Layout layout = Layout::nchw;
};

/// y_o = Σ_k x_(o · stride + k − padding) / count; shapes as max_pool's. Source: PyTorch; TensorFlow for Padding::same and
/// Padding::valid.
Tensor avg_pool1d(const Arg& x, const AxisNumbers& window, const AveragePoolOptions& options = {});
Tensor avg_pool2d(const Arg& x, const AxisNumbers& window, const AveragePoolOptions& options = {});
Tensor avg_pool3d(const Arg& x, const AxisNumbers& window, const AveragePoolOptions& options = {});

struct AdaptivePoolOptions {
  Layout layout = Layout::nchw;
};

/// The mean of each of `results` parts of x: along an axis of d elements, part o goes from floor(o d / results) to
/// ceil((o + 1) d / results), so that neighbours may overlap. Source: PyTorch.
Tensor adaptive_avg_pool1d(const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options = {});
Tensor adaptive_avg_pool2d(const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options = {});
Tensor adaptive_avg_pool3d(const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options = {});

/// The largest of each of these parts, as max_pool.
Tensor adaptive_max_pool1d(const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options = {});
Tensor adaptive_max_pool2d(const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options = {});
Tensor adaptive_max_pool3d(const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options = {});

/// The same, with indices as those of max_pool's.
ValuesAndIndices adaptive_max_pool1d_with_indices(const Arg& x, const AxisNumbers& results,
                                                  AdaptivePoolOptions options = {});
ValuesAndIndices adaptive_max_pool2d_with_indices(const Arg& x, const AxisNumbers& results,
                                                  AdaptivePoolOptions options = {});
ValuesAndIndices adaptive_max_pool3d_with_indices(const Arg& x, const AxisNumbers& results,
                                                  AdaptivePoolOptions options = {});

struct MaxUnpoolOptions {
  Layout layout = Layout::nchw;
};

/// The values of max_pool back at their indices, and zeros elsewhere: y at index_o is x_o, for x and indices: (N, C, o…) →
/// (N, C, sizes…). Indices of i64 or i32 count places as max_pool's do; negative ones from the end. Of several x_o with one
/// index the last one stays, and has the gradient. Throws: IndexError for an index out of range; ShapeError unless x and
/// indices have one shape. Source: PyTorch.
Tensor max_unpool1d(const Arg& x, const Arg& indices, const AxisNumbers& sizes, MaxUnpoolOptions options = {});
Tensor max_unpool2d(const Arg& x, const Arg& indices, const AxisNumbers& sizes, MaxUnpoolOptions options = {});
Tensor max_unpool3d(const Arg& x, const Arg& indices, const AxisNumbers& sizes, MaxUnpoolOptions options = {});

}  // namespace reel
