#pragma once

#include "../kernel_table.h"

namespace reel::detail {

struct PoolingKernels {};

}  // namespace reel::detail
