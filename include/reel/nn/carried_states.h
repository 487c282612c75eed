#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <reel/named_tensor.h>
#include <reel/ops/recurrent.h>

namespace reel::nn {

/// The states that a recurrent layer carries from one minibatch to the next, for each of many long sequences by its id.
/// The sequences of a minibatch may be any, in any order.
///
///     CarriedStates carried;
///     for (const Batch& batch : batches) {                      // each a stretch of the sequences batch.ids
///       LSTMOutput result = lstm(batch.x, carried.of(batch.ids));
///       carried.keep(batch.ids, {result.h_n, result.c_n});
///       for (std::int64_t id : batch.finished) carried.reset(id);
///     }
class CarriedStates {
 public:
  /// The states that were kept last for the sequences with these ids, zeros for others: h, and c where it was kept,
  /// (nets, B, H). Undefined, which layers treat as zeros, if nothing is kept for any.
  LSTMState of(std::span<const std::int64_t> ids, Location where = Location::here()) const;
  /// The states h (nets, B, H) that were kept last for the sequences with these ids, for a layer without c; zeros for
  /// others. Undefined, which layers treat as zeros, if nothing is kept for any.
  Tensor h_of(std::span<const std::int64_t> ids, Location where = Location::here()) const { return of(ids, where).h; }

  /// Keeps the values of states (nets, B, H) for the sequences with these ids, detached from the tape.
  /// Throws: Error for an id that occurs twice, or undefined h; ShapeError unless there is a state for each.
  void keep(std::span<const std::int64_t> ids, const LSTMState& states, Location where = Location::here());
  /// Keeps the values of states (nets, B, H) for the sequences with these ids, detached from the tape.
  /// Throws: Error for an id that occurs twice, or undefined h; ShapeError unless there is a state for each.
  void keep(std::span<const std::int64_t> ids, const Tensor& h, Location where = Location::here()) {
    keep(ids, LSTMState{h, {}}, where);
  }

  /// Restarts one sequence from zeros.
  void reset(std::int64_t id) { states_.erase(id); }
  /// Restarts all sequences from zeros.
  void reset() { states_.clear(); }
  /// The number of sequences with a state.
  std::int64_t size() const { return static_cast<std::int64_t>(states_.size()); }

  /// All that is kept: "7.h" and, where it was kept, "7.c", each (nets, H), by the id of the sequence.
  std::vector<NamedTensor> state() const;
  /// Restores what `state()` gave; tensors on the CPU are moved to the default device. After an exception nothing has
  /// changed.
  /// Throws: Error for an unknown name, a c without its h, or an undefined tensor; ShapeError unless all are (nets, H).
  void load_state(std::span<const NamedTensor> state, Location where = Location::here());

 private:
  std::map<std::int64_t, LSTMState> states_;  // each (nets, H)
};

}  // namespace reel::nn
