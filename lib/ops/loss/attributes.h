#pragma once

#include <cstdint>

#include "../../core/op.h"

// Attributes of calls, for what reads recorded calls.

namespace reel::detail {

/// The target that a loss of classes ignores.
struct IgnoreAttributes {
  std::int64_t ignored;
};

}  // namespace reel::detail
