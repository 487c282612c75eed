#pragma once

#include "../../../core/target.h"
#include "../../../kernels/convolution.h"

namespace reel::detail::inline REEL_TARGET {

void convolve_forward(const View& out, const View& x, const View& w, const View* bias, const Convolution& convolution);
void convolve_backward_data(const View& out, const View& d, const View& w, const View* bias,
                            const Convolution& convolution);
void convolve_backward_weights(const View& out, const View& x, const View& d, const Convolution& convolution);

}  // namespace reel::detail::inline REEL_TARGET
