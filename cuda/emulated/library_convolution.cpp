#include "../libraries/library_convolution.h"

namespace reel::detail::inline REEL_TARGET {

bool convolve_by_library(const View&, const View&, const View&, const View*, const Convolution&) { return false; }
bool convolve_data_by_library(const View&, const View&, const View&, const View*, const Convolution&) { return false; }
bool convolve_weights_by_library(const View&, const View&, const View&, const Convolution&) { return false; }

}  // namespace reel::detail::inline REEL_TARGET
