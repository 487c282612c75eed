#pragma once

#include "../kernel_table.h"

namespace reel::detail {

struct RecurrentKernels {};

}  // namespace reel::detail
