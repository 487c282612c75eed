#pragma once

#include "../kernel_table.h"

namespace reel::detail {

struct ConvolutionKernels {};

}  // namespace reel::detail
