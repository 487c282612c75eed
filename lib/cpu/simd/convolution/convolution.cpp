#include "convolution.h"

#include "../instruction_set.h"

namespace reel::detail::inline REEL_TARGET {

void fill_convolution(KernelTable& table) {
  static constexpr ConvolutionKernels kernels{convolve_forward, convolve_backward_data, convolve_backward_weights};
  table.convolution = &kernels;
}

}  // namespace reel::detail::inline REEL_TARGET
