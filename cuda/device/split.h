#pragma once

#include <cstdint>

#include "offsets.h"

namespace reel::detail::inline REEL_TARGET {

/// Divides numbers below a limit by a fixed one, into quotient and remainder.
class Split {
 public:
  struct Parts {
    std::int64_t whole, rest;
  };

  Split() = default;
  Split(std::int64_t divisor, std::int64_t limit)
      : divisor_(divisor > 0 ? divisor : 1), small_(limit <= most && divisor_ <= most) {
    if (small_) short_ = Divisor(static_cast<std::uint32_t>(divisor_));
  }
  REEL_HOST_DEVICE Parts operator()(std::int64_t n) const {
    if (small_) {
      std::uint32_t whole = short_.quotient(static_cast<std::uint32_t>(n));
      return {whole, static_cast<std::uint32_t>(n) - whole * short_.value()};
    }
    std::int64_t whole = n / divisor_;
    return {whole, n - whole * divisor_};
  }

 private:
  static constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;

  std::int64_t divisor_ = 1;
  bool small_ = true;
  Divisor short_;
};

}  // namespace reel::detail::inline REEL_TARGET
