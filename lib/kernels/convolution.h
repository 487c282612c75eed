#pragma once

#include <cstdint>

#include "kernel_table.h"

namespace reel::detail {

/// The parameters of a convolution over up to three spatial axes. Missing axes come first, with stride 1 and no
/// padding. Padding after an image's last element follows from the sizes.
struct Convolution {
  std::int64_t stride[3], dilation[3];
  std::int64_t padding[3];  ///< zeros before an image's first element
  std::int64_t groups;
  std::int64_t channels_last;
};

/// x: (N, C_in, d…), w: (C_out, C_in / groups, k…), y and its gradient d: (N, C_out, o…); with the channels last, x and
/// y are (N, d…, C). Element o of y depends on the elements o · stride + k · dilation − padding of x. All may have any
/// strides, but `out` is contiguous; all have one floating dtype.
struct ConvolutionKernels {
  /// y = x ∗ w + bias; `bias` may be null.
  void (*forward)(const View& out, const View& x, const View& w, const View* bias, const Convolution& convolution);
  /// The gradient of x, plus `bias` for each channel unless that is null.
  void (*backward_data)(const View& out, const View& d, const View& w, const View* bias,
                        const Convolution& convolution);
  /// The gradient of w.
  void (*backward_weights)(const View& out, const View& x, const View& d, const Convolution& convolution);
};

}  // namespace reel::detail
