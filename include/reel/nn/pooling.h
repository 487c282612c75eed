#pragma once

#include <reel/detail/fixed_name.h>
#include <reel/nn/module.h>
#include <reel/ops/pooling.h>

namespace reel::nn {

/// A layer that applies a pooling op with a window, or for the adaptive ones a number of results, and options.
template <FixedName op_name, auto op, class Options>
struct Pooling : Module {
  /// A layer by itself, not part of a module. `window`: one size for all axes, or one an axis; for adaptive pooling,
  /// the number of results along each. Out-of-range sizes are reported when the layer is called.
  explicit Pooling(const AxisNumbers& window, const Options& options = {}) : window_(window), options_(options) {}
  /// A layer that is registered in `parent` under `name`. `window`: one size for all axes, or one an axis; for adaptive
  /// pooling, the number of results along each.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot.
  Pooling(Module& parent, std::string_view name, const AxisNumbers& window, const Options& options = {},
          Location where = Location::here())
      : Pooling(window, options) {
    join(parent, name, where);
  }

  /// The pooled x.
  /// Throws: DTypeError unless x is floating; ShapeError for another rank, and for sizes or options that do not fit;
  /// Error if x is undefined.
  Tensor operator()(const Arg& x) const {
    return call(op_name.text, x, [&](const Tensor& x) { return op(x, window_, options_); });
  }

 private:
  AxisNumbers window_;
  Options options_;
};

/// The largest element of each window along one spatial axis: x: (N, C, L), or with Layout::nhwc the channels last; see
/// `max_pool1d`.
/// Source: PyTorch's MaxPool1d.
struct MaxPool1d : Pooling<"MaxPool1d", max_pool1d, MaxPoolOptions> {
  /// The constructors of the base class.
  using Pooling::Pooling;
};
/// The largest element of each window along two spatial axes: x: (N, C, H, W), or with Layout::nhwc the channels last;
/// see `max_pool2d`.
/// Source: PyTorch's MaxPool2d.
struct MaxPool2d : Pooling<"MaxPool2d", max_pool2d, MaxPoolOptions> {
  /// The constructors of the base class.
  using Pooling::Pooling;
};
/// The largest element of each window along three spatial axes: x: (N, C, D, H, W), or with Layout::nhwc the channels
/// last; see `max_pool3d`.
/// Source: PyTorch's MaxPool3d.
struct MaxPool3d : Pooling<"MaxPool3d", max_pool3d, MaxPoolOptions> {
  /// The constructors of the base class.
  using Pooling::Pooling;
};

/// The mean of each window along one spatial axis: x: (N, C, L), or with Layout::nhwc the channels last; see
/// `avg_pool1d`.
/// Source: PyTorch's AvgPool1d.
struct AvgPool1d : Pooling<"AvgPool1d", avg_pool1d, AveragePoolOptions> {
  /// The constructors of the base class.
  using Pooling::Pooling;
};
/// The mean of each window along two spatial axes: x: (N, C, H, W), or with Layout::nhwc the channels last; see
/// `avg_pool2d`.
/// Source: PyTorch's AvgPool2d.
struct AvgPool2d : Pooling<"AvgPool2d", avg_pool2d, AveragePoolOptions> {
  /// The constructors of the base class.
  using Pooling::Pooling;
};
/// The mean of each window along three spatial axes: x: (N, C, D, H, W), or with Layout::nhwc the channels last; see
/// `avg_pool3d`.
/// Source: PyTorch's AvgPool3d.
struct AvgPool3d : Pooling<"AvgPool3d", avg_pool3d, AveragePoolOptions> {
  /// The constructors of the base class.
  using Pooling::Pooling;
};

/// The largest element of each of a given number of parts along one spatial axis: x: (N, C, L), or with Layout::nhwc
/// the channels last; see `adaptive_max_pool1d`.
/// Source: PyTorch's AdaptiveMaxPool1d.
struct AdaptiveMaxPool1d : Pooling<"AdaptiveMaxPool1d", adaptive_max_pool1d, AdaptivePoolOptions> {
  /// The constructors of the base class.
  using Pooling::Pooling;
};
/// The largest element of each of a given number of parts along two spatial axes: x: (N, C, H, W), or with Layout::nhwc
/// the channels last; see `adaptive_max_pool2d`.
/// Source: PyTorch's AdaptiveMaxPool2d.
struct AdaptiveMaxPool2d : Pooling<"AdaptiveMaxPool2d", adaptive_max_pool2d, AdaptivePoolOptions> {
  /// The constructors of the base class.
  using Pooling::Pooling;
};
/// The largest element of each of a given number of parts along three spatial axes: x: (N, C, D, H, W), or with
/// Layout::nhwc the channels last; see `adaptive_max_pool3d`.
/// Source: PyTorch's AdaptiveMaxPool3d.
struct AdaptiveMaxPool3d : Pooling<"AdaptiveMaxPool3d", adaptive_max_pool3d, AdaptivePoolOptions> {
  /// The constructors of the base class.
  using Pooling::Pooling;
};
/// The mean of each of a given number of parts along one spatial axis: x: (N, C, L), or with Layout::nhwc the channels
/// last; see `adaptive_avg_pool1d`.
/// Source: PyTorch's AdaptiveAvgPool1d.
struct AdaptiveAvgPool1d : Pooling<"AdaptiveAvgPool1d", adaptive_avg_pool1d, AdaptivePoolOptions> {
  /// The constructors of the base class.
  using Pooling::Pooling;
};
/// The mean of each of a given number of parts along two spatial axes: x: (N, C, H, W), or with Layout::nhwc the
/// channels last; see `adaptive_avg_pool2d`.
/// Source: PyTorch's AdaptiveAvgPool2d.
struct AdaptiveAvgPool2d : Pooling<"AdaptiveAvgPool2d", adaptive_avg_pool2d, AdaptivePoolOptions> {
  /// The constructors of the base class.
  using Pooling::Pooling;
};
/// The mean of each of a given number of parts along three spatial axes: x: (N, C, D, H, W), or with Layout::nhwc the
/// channels last; see `adaptive_avg_pool3d`.
/// Source: PyTorch's AdaptiveAvgPool3d.
struct AdaptiveAvgPool3d : Pooling<"AdaptiveAvgPool3d", adaptive_avg_pool3d, AdaptivePoolOptions> {
  /// The constructors of the base class.
  using Pooling::Pooling;
};

}  // namespace reel::nn
