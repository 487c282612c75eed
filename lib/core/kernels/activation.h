#pragma once

#include "../kernel_table.h"

namespace reel::detail {

struct ActivationKernels {};

}  // namespace reel::detail
