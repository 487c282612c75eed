#pragma once

#include "../kernel_table.h"

namespace reel::detail {

struct EmbeddingKernels {};

}  // namespace reel::detail
