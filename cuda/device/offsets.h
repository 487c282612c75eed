#pragma once

#include <cstdint>

#include "../../lib/core/iteration.h"
#include "../../lib/core/target.h"

namespace reel::detail {
inline namespace REEL_TARGET {

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
/// the first.
template <int operand_count>
class Offsets {
 public:
  Offsets() = default;
  explicit Offsets(const Iteration<operand_count>& iteration) : rank_(iteration.rank) {
    std::int64_t numel = 1;
    for (int axis = 0; axis < rank_; ++axis) {
      dims_[axis] = iteration.dims[axis];
      numel *= dims_[axis];
      for (int k = 0; k < operand_count; ++k) strides_[k][axis] = iteration.strides[k][axis];
    }
    small_ = numel < (std::int64_t{1} << 31);
    if (!small_ || numel == 0) return;
    for (int axis = 0; axis < rank_; ++axis) divisors_[axis] = Divisor(static_cast<std::uint32_t>(dims_[axis]));
  }

  REEL_HOST_DEVICE void find(std::int64_t i, std::int64_t (&offsets)[operand_count]) const {
    for (int k = 0; k < operand_count; ++k) offsets[k] = 0;
    if (small_) {
      auto rest = static_cast<std::uint32_t>(i);
      for (int axis = 0; axis < rank_; ++axis) {
        std::uint32_t above = divisors_[axis].quotient(rest);
        add(axis, rest - above * divisors_[axis].value(), offsets);
        rest = above;
      }
    } else {
      for (int axis = 0; axis < rank_; ++axis) {
        add(axis, i % dims_[axis], offsets);
        i /= dims_[axis];
      }
    }
  }

 private:
  REEL_HOST_DEVICE void add(int axis, std::int64_t at, std::int64_t (&offsets)[operand_count]) const {
    for (int k = 0; k < operand_count; ++k) offsets[k] += at * strides_[k][axis];
  }

  int rank_ = 0;
  bool small_ = true;
  Divisor divisors_[8];
  std::int64_t dims_[8];
  std::int64_t strides_[operand_count][8];
};

}  // namespace REEL_TARGET
}  // namespace reel::detail
