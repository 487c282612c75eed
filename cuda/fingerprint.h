#pragma once

#include <cstdint>

#include "device.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// Elements that lie in order, by how many bytes they are looked at: 1, 2 or 4.
struct Fingerprinted {
  const void* data;
  std::int64_t count;  // of such units
  int unit;
};

/// Writes a number that depends on every bit: two tensors with the same one are taken to be the same.
void write_fingerprint(std::uint64_t* place, const Fingerprinted& x);
/// Reports `changed` with `first` = number where it is another one than is written there.
void compare_fingerprint(const std::uint64_t* place, const Fingerprinted& x, std::int64_t number, FaultNote note);

}  // namespace REEL_TARGET
}  // namespace reel::detail
