#pragma once

#include <cstdint>

#include "../../lib/core/iteration.h"
#include "../../lib/core/target.h"

namespace reel::detail::inline REEL_TARGET {

/// Divides numbers below 2³¹ by a fixed one without a division.
/// Source: Granlund and Montgomery, Division by invariant integers using multiplication (PLDI 1994), figure 4.1.
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(std::uint32_t divisor) : divisor_(divisor) {
    while ((std::uint64_t{1} << shift_) < divisor) ++shift_;
    factor_ =
        static_cast<std::uint32_t>(((std::uint64_t{1} << 32) * ((std::uint64_t{1} << shift_) - divisor)) / divisor + 1);
  }
  REEL_HOST_DEVICE std::uint32_t quotient(std::uint32_t n) const {
    auto high = static_cast<std::uint32_t>((std::uint64_t{n} * factor_) >> 32);
    return (high + n) >> shift_;
  }
  REEL_HOST_DEVICE std::uint32_t value() const { return divisor_; }

 private:
  std::uint32_t divisor_ = 1, factor_ = 1, shift_ = 0;
};

/// The offsets of element i, in row-major order of the first of several views, in each of them; all are broadcast to
/// the first. If there are fewer than 2³¹ elements and all offsets have 31 bits, all of it is computed in 32 bits.
template <int operand_count>
class Offsets {
 public:
  Offsets() = default;
  explicit Offsets(const Iteration<operand_count>& iteration) : rank_(iteration.rank) {
    constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
    std::int64_t numel = 1, farthest[operand_count] = {};
    for (int axis = 0; axis < rank_; ++axis) {
      dims_[axis] = iteration.dims[axis];
      numel *= dims_[axis];
      for (int k = 0; k < operand_count; ++k) {
        strides_[k][axis] = iteration.strides[k][axis];
        farthest[k] += distance(dims_[axis] - 1, strides_[k][axis]);
      }
    }
    small_ = numel <= most;
    narrow_ = small_;
    for (std::int64_t each : farthest) narrow_ &= each <= most;
    if (!small_ || numel == 0) return;
    for (int axis = 0; axis < rank_; ++axis) {
      divisors_[axis] = Divisor(static_cast<std::uint32_t>(dims_[axis]));
      for (int k = 0; k < operand_count; ++k) short_strides_[k][axis] = static_cast<std::int32_t>(strides_[k][axis]);
    }
  }

  REEL_HOST_DEVICE void find(std::int64_t i, std::int64_t (&offsets)[operand_count]) const {
    if (narrow_) return find_narrow(static_cast<std::uint32_t>(i), offsets);
    for (int k = 0; k < operand_count; ++k) offsets[k] = 0;
#pragma unroll 1
    for (int axis = 0; axis < rank_; ++axis) {
      std::int64_t above = small_ ? divisors_[axis].quotient(static_cast<std::uint32_t>(i)) : i / dims_[axis];
      std::int64_t at = i - above * dims_[axis];
      for (int k = 0; k < operand_count; ++k) offsets[k] += at * strides_[k][axis];
      i = above;
    }
  }
  /// True if offsets are computed in 32 bits.
  bool is_narrow() const { return narrow_; }

 private:
  // |steps × stride|, or 2³¹ if it is more.
  static std::int64_t distance(std::int64_t steps, std::int64_t stride) {
    constexpr std::int64_t limit = std::int64_t{1} << 31;
    std::int64_t size = stride < 0 ? -stride : stride;
    if (steps <= 0 || size == 0) return 0;
    return steps >= limit || size >= limit || steps * size > limit ? limit : steps * size;
  }

  REEL_HOST_DEVICE void find_narrow(std::uint32_t rest, std::int64_t (&offsets)[operand_count]) const {
    std::int32_t sums[operand_count] = {};
    int outermost = rank_ - 1;
    for (int axis = 0; axis < outermost; ++axis) {
      std::uint32_t above = divisors_[axis].quotient(rest);
      add(axis, rest - above * divisors_[axis].value(), sums);
      rest = above;
    }
    if (outermost >= 0) add(outermost, rest, sums);
    for (int k = 0; k < operand_count; ++k) offsets[k] = sums[k];
  }
  REEL_HOST_DEVICE void add(int axis, std::uint32_t at, std::int32_t (&sums)[operand_count]) const {
    for (int k = 0; k < operand_count; ++k) sums[k] += static_cast<std::int32_t>(at) * short_strides_[k][axis];
  }

  int rank_ = 0;
  bool small_ = true, narrow_ = true;
  Divisor divisors_[8];
  std::int32_t short_strides_[operand_count][8];
  std::int64_t dims_[8];
  std::int64_t strides_[operand_count][8];
};

}  // namespace reel::detail::inline REEL_TARGET
