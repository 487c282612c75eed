#pragma once

#include <cstdint>

#include "../../core/op.h"
#include "../../kernels/kernel_table.h"

// Attributes of calls, for what reads recorded calls.

namespace reel::detail {

/// The random numbers of a draw, and the probability of `bernoulli` or `dropout`. See `OpInfo::own_attributes` for `rows`.
struct DrawAttributes {
  std::int64_t rows;
  std::uint64_t seed, call;
  FloatBits probability;
  RandomCall random_call() const { return {seed, call}; }
};

}  // namespace reel::detail
