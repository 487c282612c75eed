#pragma once

#include <cstdint>

#include <reel/detail/body.h>

namespace reel::detail {

/// Why a tensor has no slot: stored in `Body::slot` of an untracked tensor, unless it was made in an isolated function.
enum class Origin : std::uint32_t {
  before_tape,  ///< no tape was open
  recorded,     ///< a tape recorded, and nothing was cut off
  paused,       ///< under NoRecord
  gradient,     ///< a tape that was not recorded itself differentiated
  constant_op,  ///< computed from tracked tensors, by an op without a gradient, or by code that has used its result
  detached,     ///< computed from tracked tensors, and detached by stop_gradient
  frozen,       ///< from a parameter whose requires_grad is off
};

/// `Body::slot` of untracked tensors made in isolated functions holds a scope id, from this value on.
constexpr std::uint32_t first_isolated_scope = 16;

/// `Body::epoch` of an untracked tensor is 0 or a mark of an op that has used it; see UseLog.
constexpr bool is_untracked(std::uint64_t epoch) { return static_cast<std::int64_t>(epoch) <= 0; }
inline bool is_untracked(const Body& body) { return is_untracked(body.epoch.load(std::memory_order_relaxed)); }

/// The origin of an untracked tensor.
inline Origin origin_of(const Body& body) {
  return body.slot < first_isolated_scope ? static_cast<Origin>(body.slot) : Origin::recorded;
}

/// Returns true if gradients would have flowed through the tensor, had an op or the caller not cut it off from the
/// tape.
constexpr bool is_cut(Origin origin) { return origin >= Origin::constant_op; }
/// The origin that the results of ops on this tensor inherit, if it is untracked and cut off; else an origin that is no
/// cut.
inline Origin cut_of(const Body& body) {
  if (!is_untracked(body)) return Origin::before_tape;
  if (body.leaf) return body.requires_grad ? Origin::before_tape : Origin::frozen;
  return origin_of(body);
}
/// Marks an untracked tensor as cut off, unless it is already.
inline void set_cut(Body& body, Origin cut) {
  if (is_untracked(body) && body.slot < first_isolated_scope && !is_cut(origin_of(body)))
    body.slot = static_cast<std::uint32_t>(cut);
}

}  // namespace reel::detail
