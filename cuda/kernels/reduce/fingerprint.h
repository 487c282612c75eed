#pragma once

#include <cstdint>

#include "../../device/device.h"

namespace reel::detail::inline REEL_TARGET {

/// Contiguous elements in units of 1, 2 or 4 bytes.
struct Fingerprinted {
  const void* data;
  std::int64_t count;  // of units
  int unit;
};

/// Writes a hash that depends on every bit: tensors with equal hashes are treated as equal.
void write_fingerprint(std::uint64_t* place, const Fingerprinted& x);
/// Reports `changed` with `first` = result if the hash differs from the one stored at `place`.
void compare_fingerprint(const std::uint64_t* place, const Fingerprinted& x, std::int64_t result,
                         FaultReporter reporter);

}  // namespace reel::detail::inline REEL_TARGET
