#pragma once

#include <cstdint>

#include "../../core/op.h"

// Attributes of calls, for what reads recorded calls.

namespace reel::detail {

/// The target that a loss of classes ignores.
struct IgnoreAttributes {
  std::int64_t ignored;
};

/// The ElementLoss of a call, and the parameter of that loss.
struct ElementLossAttributes {
  std::int64_t kind;
  FloatBits parameter;
};

}  // namespace reel::detail
