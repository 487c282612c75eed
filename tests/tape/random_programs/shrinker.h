#pragma once

#include <functional>

#include "program.h"

namespace reel_test::programs {

/// A program as small as can be found that still fails.
Program shrunk(Program program, const std::function<bool(const Program&)>& fails);

}  // namespace reel_test::programs
