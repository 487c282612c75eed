#pragma once

#include <cstdint>
#include <map>
#include <span>

#include <reel/ops/recurrent.h>

namespace reel::nn {

/// What a recurrent layer carries from one minibatch to the next, for each of many long sequences by its number. The
/// sequences of a minibatch may be any, in any order.
///
///     CarriedStates carried;
///     for (const Batch& batch : batches) {                      // each a stretch of the sequences batch.ids
///       LSTMOutput result = lstm(batch.x, carried.of(batch.ids));
///       carried.keep(batch.ids, {result.h_n, result.c_n});
///       for (std::int64_t id : batch.finished) carried.reset(id);
///     }
class CarriedStates {
 public:
  /// h, and c where it was kept, (nets, B, H): what was kept last for these sequences, zeros for others. Undefined, which
  /// layers take for zeros, if nothing is kept for any.
  LSTMState of(std::span<const std::int64_t> ids, Location where = Location::here()) const;
  /// The same of a layer without c.
  Tensor h_of(std::span<const std::int64_t> ids, Location where = Location::here()) const { return of(ids, where).h; }

  /// Keeps the values of states (nets, B, H), cut off from the steps that led to them.
  /// Throws: Error for a number that comes twice, or undefined h; ShapeError unless there is a state for each.
  void keep(std::span<const std::int64_t> ids, const LSTMState& states, Location where = Location::here());
  void keep(std::span<const std::int64_t> ids, const Tensor& h, Location where = Location::here()) {
    keep(ids, LSTMState{h, {}}, where);
  }

  /// The sequence starts anew from zeros.
  void reset(std::int64_t id) { states_.erase(id); }
  /// All do.
  void reset() { states_.clear(); }
  /// How many sequences there is something kept for.
  std::int64_t size() const { return static_cast<std::int64_t>(states_.size()); }

 private:
  std::map<std::int64_t, LSTMState> states_;  // each (nets, H)
};

}  // namespace reel::nn
