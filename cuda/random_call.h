#pragma once

#include <cstdint>

#include "../lib/core/kernel_table.h"
#include "../lib/core/philox.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// Null unless a graph is being recorded: else where its kernels find, at each replay, the seed and how many calls there
/// have been since. Throws: DeviceError for a call of another generator than the thread's.
const std::uint64_t* recorded_draws(RandomCall call);

/// A RandomCall as kernels see it.
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

}  // namespace REEL_TARGET
}  // namespace reel::detail
