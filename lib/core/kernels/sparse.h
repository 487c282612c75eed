#pragma once

#include "../kernel_table.h"

namespace reel::detail {

struct SparseKernels {};

}  // namespace reel::detail
