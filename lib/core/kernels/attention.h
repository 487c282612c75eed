#pragma once

#include "../kernel_table.h"

namespace reel::detail {

struct AttentionKernels {};

}  // namespace reel::detail
