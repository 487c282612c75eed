#pragma once

#include "../kernel_table.h"

namespace reel::detail {

struct ResampleKernels {};

}  // namespace reel::detail
