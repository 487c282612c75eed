#pragma once

#include "../../lib/core/target.h"
#include "../../lib/kernels/convolution.h"

namespace reel::detail::inline REEL_TARGET {

// The slots of ConvolutionKernels, by a library of the device's vendor. Each returns false, without doing anything, if
// the library has no kernel for the operands. Results and operands are contiguous and not empty; the filters' channels
// are at the position in memory where the images' are.
bool convolve_by_library(const View& out, const View& x, const View& w, const View* bias, const Convolution& c);
bool convolve_data_by_library(const View& out, const View& d, const View& w, const View* bias, const Convolution& c);
bool convolve_weights_by_library(const View& out, const View& x, const View& d, const Convolution& c);

}  // namespace reel::detail::inline REEL_TARGET
