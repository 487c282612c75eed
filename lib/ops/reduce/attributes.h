#pragma once

#include <cstdint>

#include "../../core/op.h"

// Attributes of calls, for what reads recorded calls.

namespace reel::detail {

/// The exponent of `norm`.
struct NormAttributes {
  FloatBits p;
};

/// The axis and direction of a scan.
struct ScanAttributes {
  std::int64_t axis;
  std::int64_t backwards;

  int on_axis() const { return static_cast<int>(axis); }
  ScanAttributes reversed() const { return {axis, !backwards}; }
};

/// The divisor of the sum of squares in `var` and `std`.
struct VarianceAttributes {
  FloatBits divisor;
};

/// The axis and order of `sort` and `topk`, and of `cummax` and `cummin`.
struct OrderAttributes {
  std::int64_t axis, descending;
};

/// The ranks of `places_of_ranks`, as many as the result has along its last axis.
struct RankAttributes {
  std::int64_t ranks[2];
};

}  // namespace reel::detail
