#pragma once

#include <reel/nn/fixed_name.h>
#include <reel/nn/module.h>
#include <reel/ops/pool.h>

namespace reel::nn {

/// What the layers below are: the op of the same name, with what it was made with. `window`: one size for all axes, or one
/// an axis; of the adaptive ones, how many results there are along each. Throws, when called: as the op.
template <FixedName op_name, auto op, class Options>
struct Pooling : Module {
  explicit Pooling(const AxisNumbers& window, const Options& options = {}) : window_(window), options_(options) {}
  Pooling(Module& parent, std::string_view name, const AxisNumbers& window, const Options& options = {},
          Location where = Location::here())
      : Pooling(window, options) {
    join(parent, name, where);
  }

  Tensor operator()(const Arg& x) const {
    return call(op_name.text, x, [&](const Tensor& x) { return op(x, window_, options_); });
  }

 private:
  AxisNumbers window_;
  Options options_;
};

/// The largest elements of windows. Source: PyTorch's MaxPool1d and so on; so with what follows.
struct MaxPool1d : Pooling<"MaxPool1d", max_pool1d, MaxPoolOptions> {
  using Pooling::Pooling;
};
struct MaxPool2d : Pooling<"MaxPool2d", max_pool2d, MaxPoolOptions> {
  using Pooling::Pooling;
};
struct MaxPool3d : Pooling<"MaxPool3d", max_pool3d, MaxPoolOptions> {
  using Pooling::Pooling;
};

/// The means of windows.
struct AvgPool1d : Pooling<"AvgPool1d", avg_pool1d, AveragePoolOptions> {
  using Pooling::Pooling;
};
struct AvgPool2d : Pooling<"AvgPool2d", avg_pool2d, AveragePoolOptions> {
  using Pooling::Pooling;
};
struct AvgPool3d : Pooling<"AvgPool3d", avg_pool3d, AveragePoolOptions> {
  using Pooling::Pooling;
};

/// The largest elements, and the means, of a given number of parts.
struct AdaptiveMaxPool1d : Pooling<"AdaptiveMaxPool1d", adaptive_max_pool1d, AdaptivePoolOptions> {
  using Pooling::Pooling;
};
struct AdaptiveMaxPool2d : Pooling<"AdaptiveMaxPool2d", adaptive_max_pool2d, AdaptivePoolOptions> {
  using Pooling::Pooling;
};
struct AdaptiveMaxPool3d : Pooling<"AdaptiveMaxPool3d", adaptive_max_pool3d, AdaptivePoolOptions> {
  using Pooling::Pooling;
};
struct AdaptiveAvgPool1d : Pooling<"AdaptiveAvgPool1d", adaptive_avg_pool1d, AdaptivePoolOptions> {
  using Pooling::Pooling;
};
struct AdaptiveAvgPool2d : Pooling<"AdaptiveAvgPool2d", adaptive_avg_pool2d, AdaptivePoolOptions> {
  using Pooling::Pooling;
};
struct AdaptiveAvgPool3d : Pooling<"AdaptiveAvgPool3d", adaptive_avg_pool3d, AdaptivePoolOptions> {
  using Pooling::Pooling;
};

}  // namespace reel::nn
