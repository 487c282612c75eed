#pragma once

#include <cstdint>

#include "../../core/op.h"

// Attributes of calls, for what reads recorded calls.

namespace reel::detail {

/// The factor of the scores, and whether later keys are masked.
struct AttentionAttributes {
  FloatBits scale;
  std::int64_t causal;
};

}  // namespace reel::detail
