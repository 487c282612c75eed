#pragma once

#include "../kernel_table.h"

namespace reel::detail {

struct LossKernels {};

}  // namespace reel::detail
