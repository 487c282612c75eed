#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <reel/tape.h>

#include "../core/context.h"
#include "../record/tape_list.h"

namespace reel::detail {

class JacobianBlocks;
class BackwardPass;

/// While it lives, a tape differentiates, and nothing is recorded unless the tape is `enclosed` by other tapes.
class DifferentiatingScope : Immovable {
 public:
  DifferentiatingScope(Context& context, bool enclosed) : pauses_(!enclosed && context.has(Context::recording)) {
    constexpr auto state = static_cast<std::uint32_t>(Recording::differentiating);
    if (pauses_) context.tapes->scopes().begin(context, {this, Setting::recording, state});
  }
  ~DifferentiatingScope() {
    if (pauses_) Scopes::end(this);
  }

 private:
  bool pauses_;
};

/// While it lives, autocast is off: ops run in the dtypes of their operands.
class AutocastPause : Immovable {
 public:
  explicit AutocastPause(Context& context) : pauses_(context.has(Context::autocasting)) {
    if (pauses_) context.tapes->scopes().begin(context, {this, Setting::autocast});
  }
  ~AutocastPause() {
    if (pauses_) Scopes::end(this);
  }

 private:
  bool pauses_;
};

/// Notifies this thread's listener, if there is one, of the gradient function of an entry. `gradients`: of its outputs.
class ObservedGradient : Immovable {
 public:
  ObservedGradient(Context& context, const Entry& entry, std::span<const Tensor> gradients)
      : context_(context), entry_(entry) {
    if (context.listener) context.listener->gradient_starting(entry, gradients);
  }
  ~ObservedGradient() {
    if (context_.listener) context_.listener->gradient_finished(entry_);
  }

 private:
  Context& context_;
  const Entry& entry_;
};

/// Clears the list when a differentiation that consumes it ends, by return or exception.
class Consumption : Immovable {
 public:
  Consumption(TapeList& list, bool consumes) : list_(list), consumes_(consumes) {}
  ~Consumption() {
    if (consumes_) list_.clear();
  }

 private:
  TapeList& list_;
  bool consumes_;
};

/// While it lives, the tape's flag refuses calls from the hooks that its differentiation runs, and no other example of
/// batch_map runs.
class Differentiating : Immovable {
 public:
  Differentiating(Context& context, bool& flag) : context_(context), flag_(flag) {
    flag_ = true;
    ++context_.backward_passes;
  }
  ~Differentiating() {
    flag_ = false;
    --context_.backward_passes;
  }

 private:
  Context& context_;
  bool& flag_;
};

/// Whether a target that no tape, or only an outer one, recorded may be differentiated: it is a constant to all
/// sources.
enum class Constants : std::uint8_t { refused, allowed };

/// One differentiation of a target by sources on a tape, in the name of `op`.
class Differentiation {
 public:
  /// Throws: as `Tape::gradient`, except for errors about the connection between sources and target.
  Differentiation(const char* op, Tape& tape, const Arg& target, std::span<const Tensor> sources,
                  Unconnected unconnected, Constants constants = Constants::refused);

  /// Gradients of the sum of the target times a seed. Throws: as `Tape::gradient`.
  std::vector<Tensor> gradients(const Tensor& seed);
  /// The Jacobians as `Tape::jacobian` or, if `by_example`, as `Tape::batch_jacobian`, where the first axis of the
  /// target and the sources counts examples.
  std::vector<Tensor> jacobians(bool by_example);

 private:
  bool is_source() const;
  bool is_constant() const;
  /// Restricts a backward pass to the sources and to the slots that hooks observe. Throws: TapeError if one is not
  /// connected.
  void prepare(BackwardPass& pass) const;
  void check_connected(const BackwardPass& pass) const;
  void check_batches() const;
  void fill_blocks(std::vector<JacobianBlocks>& blocks, std::int64_t examples, std::int64_t outputs) const;

  const char* op_;
  Tape& tape_;
  Context& context_;
  Location where_;
  TapeList& list_;
  const Tensor& target_;
  std::span<const Tensor> sources_;
  Unconnected unconnected_;
  std::vector<std::uint32_t> slots_;  // of the sources; 0: not tracked
  std::uint32_t target_slot_;         // 0: a constant
};

}  // namespace reel::detail
