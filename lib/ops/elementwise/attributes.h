#pragma once

#include "../../core/op.h"

// Attributes of calls, for what reads recorded calls.

namespace reel::detail {

/// The numbers of an activation: its slope, its threshold or its bounds.
struct ActivationAttributes {
  FloatBits first, second;
};

}  // namespace reel::detail
