#pragma once

#include "../lib/core/kernels/convolution.h"
#include "../lib/core/target.h"

namespace reel::detail {
inline namespace REEL_TARGET {

// The slots of ConvolutionKernels, by a library of the device's maker. Each gives false, with nothing done, where it has no
// kernel for such operands. Neither result nor operands are empty, nor have they gaps; filters, too, have the channels in
// memory where the images have them.
bool convolve_by_library(const View& out, const View& x, const View& w, const View* bias, const Convolution& c);
bool convolve_data_by_library(const View& out, const View& d, const View& w, const View* bias, const Convolution& c);
bool convolve_weights_by_library(const View& out, const View& x, const View& d, const Convolution& c);

}  // namespace REEL_TARGET
}  // namespace reel::detail
