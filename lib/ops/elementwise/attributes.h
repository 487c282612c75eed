#pragma once

#include "../../core/op.h"

// Attributes of calls, for what reads recorded calls.

namespace reel::detail {

/// The numbers of an activation: its slope, its threshold or its bounds; or what `nan_to_num` gives.
struct ActivationAttributes {
  FloatBits first, second, third;
};

}  // namespace reel::detail
