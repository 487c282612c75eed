#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <reel/hooks.h>

#include "tape_list.h"

namespace reel::detail {

class Walk;

/// What a tape does with gradients besides passing them on.
class Hooks {
 public:
  /// `slot`: of a tensor that is no parameter.
  void add(const Tensor& x, std::uint32_t slot, std::uint64_t epoch, GradientHook call, Location where);
  void add(std::string_view op, OpHook call, Location where) {
    op_hooks_.push_back({std::string(op), std::move(call), where});
  }

  /// Finds the slots of what is hooked, and of what the tape traces, for one walk.
  void begin(const TapeList& list, const Tape& tape);
  /// After `begin`: whether the walk has nothing to hand round.
  bool idle() const { return waiting_.empty() && op_hooks_.empty(); }
  /// These slots, rising.
  const std::vector<std::uint32_t>& slots() const { return slots_; }
  /// Hands the gradient of a slot round.
  void complete(Walk& walk, std::uint32_t slot);

  /// Whether there is a hook on this op.
  bool sees(const OpInfo& op) const;
  /// Hands round the gradients of an entry's outputs and inputs, each with elements of its own.
  /// Throws: Error for what does not fit.
  void pass(const TapeList& list, const Entry& entry, std::span<Tensor> outputs, std::span<Tensor> inputs) const;

  /// What the last walk found.
  std::vector<Traced> traced;

 private:
  struct TensorHook {
    Tensor parameter;  // undefined: of another tensor, which has the slot until the epoch ends
    std::uint32_t slot;
    std::uint64_t epoch;
    GradientHook call;
    Location where;
  };
  struct OpKindHook {
    std::string op;  // several custom ones may have one name
    OpHook call;
    Location where;
  };
  // Who waits for the gradient of a slot.
  struct Waiting {
    std::uint32_t slot;
    bool trace;
    std::size_t number;
  };

  std::vector<TensorHook> tensor_hooks_;
  std::vector<OpKindHook> op_hooks_;
  std::vector<Waiting> waiting_;  // by slot: hooks, then traces
  std::vector<std::uint32_t> slots_;
};

/// Throws: Error unless tapes record an op under this name.
void check_recorded(const char* caller, std::string_view name, Location where);

}  // namespace reel::detail
