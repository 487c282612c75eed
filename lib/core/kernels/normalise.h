#pragma once

#include "../kernel_table.h"

namespace reel::detail {

struct NormaliseKernels {};

}  // namespace reel::detail
