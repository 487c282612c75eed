#pragma once

#include <cstdint>

#include <reel/detail/body.h>

namespace reel::detail {

/// Why no tape can tell how a tensor was computed: in `Body::slot` of a tensor that has no slot, unless it was made in a
/// function that runs isolated.
enum class Origin : std::uint32_t {
  before_tape,  ///< no tape was open
  recorded,     ///< a tape recorded, and nothing was cut off
  paused,       ///< under NoRecord
  gradient,     ///< a tape that was not recorded itself differentiated
  constant_op,  ///< from tracked tensors, by an op without a gradient, or by what has used its result
  detached,     ///< the same of stop_gradient
  frozen,       ///< from a parameter whose requires_grad is off
};

/// What tensors that are made in a function that runs isolated show there instead starts here.
constexpr std::uint32_t first_isolated_birth = 16;

/// Where a tensor has no slot, `Body::epoch` may note which untracked use an op has made of it; see UseLog.
constexpr bool is_untracked(std::uint64_t epoch) { return static_cast<std::int64_t>(epoch) <= 0; }
inline bool is_untracked(const Body& body) { return is_untracked(body.epoch.load(std::memory_order_relaxed)); }

/// The origin of an untracked tensor.
inline Origin origin_of(const Body& body) {
  return body.slot < first_isolated_birth ? static_cast<Origin>(body.slot) : Origin::recorded;
}

/// Whether gradients would have flowed through a tensor, had an op or its caller not cut it off from what is tracked.
constexpr bool is_cut(Origin origin) { return origin >= Origin::constant_op; }
/// The origin that results of ops on a tensor have with it, if it is untracked and cut off; else one that is no cut.
inline Origin cut_of(const Body& body) {
  if (!is_untracked(body)) return Origin::before_tape;
  if (body.leaf) return body.requires_grad ? Origin::before_tape : Origin::frozen;
  return origin_of(body);
}
/// Notes that an untracked tensor is cut off, unless it is known already.
inline void set_cut(Body& body, Origin cut) {
  if (is_untracked(body) && body.slot < first_isolated_birth && !is_cut(origin_of(body)))
    body.slot = static_cast<std::uint32_t>(cut);
}

}  // namespace reel::detail
