#pragma once

#include "../../../core/target.h"
#include "../../../kernels/convolution.h"

// Convolutions as products with a matrix of columns: one row for each element of the window, one column for each position
// of the result. It takes the memory of the source times the size of the window.

namespace reel::detail::inline REEL_TARGET {

/// Returns true if the kernels below are faster than those that read the source in place. x, w and y have the shapes of
/// ConvolutionKernels.
bool pays_columns(const View& x, const View& w, const View& y, const Convolution& convolution);

// ConvolutionKernels documents the operands.

void forward_by_columns(const View& out, const View& x, const View& w, const View* bias,
                        const Convolution& convolution);
void backward_data_by_columns(const View& out, const View& d, const View& w, const View* bias,
                              const Convolution& convolution);
void backward_weights_by_columns(const View& out, const View& x, const View& d, const Convolution& convolution);

}  // namespace reel::detail::inline REEL_TARGET
