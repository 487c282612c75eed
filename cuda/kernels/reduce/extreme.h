#pragma once

#include <cstdint>
#include <limits>

#include "reduction.h"

namespace reel::detail::inline REEL_TARGET {

/// The value that every number beats.
template <class A, bool largest>
REEL_HOST_DEVICE constexpr A worst() {
  using Limits = std::numeric_limits<A>;
  if constexpr (Limits::has_infinity)
    return largest ? -Limits::infinity() : Limits::infinity();
  else
    return largest ? Limits::min() : Limits::max();
}

/// The largest or smallest element, NaN if one is, as a reduction of reduction.h.
template <class A, bool largest>
struct Extreme {
  using Value = A;
  using Run = A;
  using State = A;
  REEL_DEVICE Extreme of(std::int64_t) const { return *this; }
  REEL_DEVICE Run open(Value value, std::int64_t) const { return value; }
  REEL_DEVICE void take(Run& run, Value value, std::int64_t) const { run = join(run, value); }
  REEL_DEVICE State close(Run run) const { return run; }
  REEL_DEVICE State nothing() const { return worst<A, largest>(); }
  REEL_DEVICE State join(State a, State b) const { return (largest ? a > b : a < b) || a != a ? a : b; }
  REEL_DEVICE void finish(State best, std::int64_t result, const Output& out) const { out.put(result, best); }
};

}  // namespace reel::detail::inline REEL_TARGET
