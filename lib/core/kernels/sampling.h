#pragma once

#include "../kernel_table.h"

namespace reel::detail {

struct SamplingKernels {};

}  // namespace reel::detail
