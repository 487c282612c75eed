#pragma once

#include <reel/tensor.h>

namespace reel {}  // namespace reel
