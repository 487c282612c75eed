#pragma once

#include <cstdint>

#include "../../core/op.h"

// Attributes of calls, for what reads recorded calls.

namespace reel::detail {

/// Whether `index_put` adds.
struct PutAttributes {
  std::int64_t accumulate;
};

/// The axis of a `scatter_reduce` to the largest or smallest element, whether x takes part, and which of them it is.
struct ExtremeAttributes {
  std::int64_t axis, include_self, largest;
};

}  // namespace reel::detail
