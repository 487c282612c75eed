#pragma once

#include "../kernel_table.h"

namespace reel::detail {

struct LinearAlgebraKernels {};

}  // namespace reel::detail
