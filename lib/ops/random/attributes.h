#pragma once

#include <cstdint>

#include "../../core/op.h"
#include "../../kernels/kernel_table.h"

// Attributes of calls, for what reads recorded calls.

namespace reel::detail {

/// The random numbers of a draw, and the probability of `bernoulli` or `dropout`.
struct DrawAttributes {
  std::uint64_t seed, call;
  FloatBits probability;
  RandomCall random_call() const { return {seed, call}; }
};

}  // namespace reel::detail
