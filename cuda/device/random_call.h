#pragma once

#include <cstdint>

#include "../../lib/core/philox.h"
#include "../../lib/kernels/kernel_table.h"

namespace reel::detail::inline REEL_TARGET {

/// While a graph is recorded: the address from which its kernels read, at each replay, the seed and the number of calls
/// since; else null. Throws: DeviceError for a call of another generator than the thread's.
const std::uint64_t* recorded_draws(RandomCall call);

/// A RandomCall as passed to kernels.
struct DeviceCall {
  std::uint64_t seed, call;
  /// See `recorded_draws`.
  const std::uint64_t* recorded;

  explicit DeviceCall(RandomCall drawn) : seed(drawn.seed), call(drawn.call), recorded(recorded_draws(drawn)) {}

  REEL_DEVICE std::uint64_t number() const { return recorded ? call + recorded[1] : call; }
  REEL_DEVICE PhiloxWords words(std::int64_t element) const {
    return philox(recorded ? recorded[0] : seed, number(), static_cast<std::uint64_t>(element));
  }
};

}  // namespace reel::detail::inline REEL_TARGET
