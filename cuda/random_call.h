#pragma once

#include <cstdint>

#include "../lib/core/kernel_table.h"
#include "../lib/core/philox.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// A RandomCall as kernels see it.
struct DeviceCall {
  std::uint64_t seed, call;
  /// On the device: how many calls a replayed graph has made since it was captured. Null outside of one.
  const std::uint64_t* added;

  explicit DeviceCall(RandomCall drawn) : seed(drawn.seed), call(drawn.call), added(nullptr) {}

  REEL_DEVICE std::uint64_t number() const { return added ? call + *added : call; }
  REEL_DEVICE PhiloxWords words(std::int64_t element) const {
    return philox(seed, number(), static_cast<std::uint64_t>(element));
  }
};

}  // namespace REEL_TARGET
}  // namespace reel::detail
