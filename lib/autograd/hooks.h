#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <reel/hooks.h>
#include <reel/tape.h>

#include "../record/tape_list.h"

namespace reel::detail {

class BackwardPass;

/// The hooks and traces of a tape: user functions that observe or replace gradients during a backward pass.
class Hooks {
 public:
  /// Adds a hook on a tensor. `slot`: of a tensor that is no parameter.
  void add(const Tensor& x, std::uint32_t slot, std::uint64_t epoch, GradientHook call, Location where);
  void add(std::string_view op, OpHook call, Location where) {
    op_hooks_.push_back({std::string(op), std::move(call), where});
  }

  /// Finds the slots of hooked and of traced tensors for one backward pass.
  void begin(const TapeList& list, const Tape& tape);
  /// After `begin`: returns true if no hook or trace is waiting.
  bool idle() const { return waiting_.empty() && op_hooks_.empty(); }
  /// The slots with hooks or traces, ascending.
  const std::vector<std::uint32_t>& slots() const { return slots_; }
  /// Calls the hooks and traces of a slot with its gradient.
  void complete(BackwardPass& pass, std::uint32_t slot);

  /// Returns true if there is a hook on this op.
  bool sees(const OpInfo& op) const;
  /// Calls the op hooks with the gradients of an entry's outputs and inputs, each with elements of its own.
  /// Throws: Error for a gradient of another shape or dtype.
  void pass(const TapeList& list, const Entry& entry, std::span<Tensor> outputs, std::span<Tensor> inputs) const;

  /// The traced gradients of the last backward pass.
  std::vector<Traced> traced;

 private:
  struct TensorHook {
    Tensor parameter;  // undefined for another tensor, which keeps the slot until the epoch ends
    std::uint32_t slot;
    std::uint64_t epoch;
    GradientHook call;
    Location where;
  };
  struct OpKindHook {
    std::string op;  // several custom ops may have one name
    OpHook call;
    Location where;
  };
  // A hook or trace that waits for the gradient of a slot.
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

/// Throws: Error unless ops of this name are recorded.
void check_recorded(const char* caller, std::string_view name, Location where);

}  // namespace reel::detail
