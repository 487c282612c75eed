#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include <reel/tape.h>

#include "../core/scopes.h"
#include "arena.h"
#include "entry.h"
#include "origin.h"
#include "use_log.h"

namespace reel::detail {

struct Context;
class Heap;

/// A thread's Wengert list: entries in the order of execution, and the numbered slots that stand for tracked tensors.
class TapeList {
 public:
  /// A thread's own.
  explicit TapeList(Scopes& scopes);
  /// The inner list of another one.
  explicit TapeList(TapeList& outer);
  /// For a forked process, in place of one that its parent, a process of this number, has tapes open on.
  TapeList(const TapeList& inherited, int parent);

  /// Puts an op that has run onto the list, if one of its inputs is tracked.
  /// Throws: TapeError for an input of a finished tape or of another thread's.
  void record(Context& context, Call& call);
  /// The same for an op that has no attributes, keeps no shapes, and gives what has its inputs' shape and dtype.
  template <class... Input>
  void record(Context& context, const OpInfo& op, Body& output, const Location& where, Input&... inputs);

  /// A value to save, with the number that `Gradient` finds it by.
  struct ToSave {
    Tensor tensor;
    int number;
  };
  /// The same as `record` for an op that says itself what it saves. `hidden`: results that the call does not show, with
  /// slots behind its outputs'. Returns whether the op is on the list.
  bool record_saving(Context& context, const Call& call, const OpInfo& op, std::span<const ToSave> values,
                     std::span<const Tensor> hidden);

  /// Before a call overwrites x: whether what x then holds is tracked, because one of the call's inputs is.
  /// Throws: TapeError as `record`; for a parameter, a watched tensor, and what another thread's tape computed.
  bool prepare_overwrite(const Call& call, const Tensor& x);
  /// Makes sure that an op which overwrites can be recorded without memory, because it cannot be undone once it has run.
  /// Throws: MemoryError in the name of `op`.
  void make_room(const char* op, Location where);
  /// Tracked values have just been written to x, or others to what was tracked: from now on tensors that share its
  /// elements, were there before, and are not settled anew are refused.
  void note_tracked_values(const Body& x);
  /// Lets go of the slot of a tensor that this list has computed, if it has one, and of what its old values were used
  /// for.
  void forget(Body& body) const;
  /// Lets a tensor stand for a slot with the values that it has now.
  void settle(Body& body, std::uint32_t slot) const {
    body.slot = slot;
    settle(body);
    body.epoch.store(epoch_, std::memory_order_relaxed);
  }
  /// What the tensor has or lacks of a slot holds for its values now.
  static void settle(Body& body) { body.slot_version = body.storage->version.load(std::memory_order_relaxed); }

  /// Whether this list holds the tensor's slot.
  bool is_live(const Body& body) const { return slot_of(body) != 0; }
  /// Whether this filling of the list gave the tensor a slot of its own.
  bool has_given_slot(const Body& body) const { return body.epoch.load(std::memory_order_relaxed) == epoch_; }
  /// Whether a live tensor is a parameter or watched, not computed.
  bool is_leaf(const Body& body) const { return !slots_[slot_of(body)].producer; }
  /// The tensor's slot; 0 if it has none that is live.
  std::uint32_t slot_of(const Body& body) const;
  /// Whether a tensor with a live slot holds other values by now, written through a tensor that shares its elements.
  bool is_overwritten(const Body& body) const;
  /// The slot of a parameter or of a tensor to watch; made if there is none.
  /// Throws: TapeError for what another thread's tape computed.
  std::uint32_t track(const char* op, const Tensor& leaf, Location where);
  /// Throws: TapeError if an op has used the untracked tensor since a period began; see UseLog::has_used.
  void check_unused(const char* op, const Tensor& tensor, std::uint32_t since, Location where) const;
  /// The slot of a tensor that an operand of `op` is to be.
  /// Throws: TapeError if it has none that is live, or was overwritten.
  std::uint32_t tracked_slot(const char* op, const Tensor& tensor, Location where) const;
  /// Marks the birth of what stop_gradient has made.
  static constexpr std::uint32_t constant_birth = std::uint32_t{1} << 31;
  /// The list for what runs apart while this one waits. Made once, and kept.
  TapeList& inner();
  /// To be called when this list begins to run apart: untracked tensors may be what an outer list has hidden.
  void look_at_hidden() noexcept;
  /// The list that waits while this one is used; null for a thread's own.
  TapeList* outer() const { return outer_; }
  Scopes& scopes() const { return scopes_; }
  UseLog& uses() const { return uses_; }
  /// On an inner list: makes a leaf of a tensor that an outer list tracks, or of a parameter, whose slot there stays.
  std::uint32_t adopt(const char* op, const Tensor& tensor, Location where);
  /// The same of a tensor that is to count as a constant.
  void adopt_constant(const char* op, const Tensor& tensor, Location where);
  /// What came from outside, in the order of first use.
  const std::vector<Tensor>& adopted() const { return adopted_; }
  /// Whether an outer list tracks the tensor, or it is a parameter.
  bool is_tracked_outside(const Body& body) const;
  /// Throws a TapeError that says why a tensor with a slot elsewhere cannot be used here.
  [[noreturn]] void refuse(const char* op, const Tensor& tensor, Location where) const;
  /// Throws a TapeError that says why a tensor without a slot here cannot be differentiated.
  [[noreturn]] void refuse_target(const char* op, const Tensor& target, Location where) const;
  /// Throws a TapeError that says why a tape over another list, or one that has ended, cannot be used here.
  [[noreturn]] void refuse_tape(const char* function, const TapeList& other, Location where) const;

  /// Sets `depth`, and ends what belongs to tapes that are no longer open; forgets everything if none is.
  void settle_depth(const Scopes& scopes) noexcept;
  /// Ends all tapes, with the thread.
  void end() noexcept;
  /// Forgets everything: entries, slots, and every claim of tensors to them.
  void clear() noexcept;
  /// Gives the memory that is kept for entries back to the system, if there are none.
  void release_memory() noexcept;
  /// Holds on to what entries point to, until all is forgotten.
  void keep(std::shared_ptr<const void> object) { kept_.push_back(std::move(object)); }
  /// Lets go of an entry's saved values.
  static void release_saved(Entry& entry) noexcept {
    std::destroy_n(entry.saved(), entry.saved_count);
    // The layout behind the saved values is not needed after this.
    entry.saved_count = 0;
  }
  /// Notes that this has been done for an entry and all before it.
  void note_released(const Entry* last) { released_ = last; }

  struct Slot {
    const SlotForm* form;
    Entry* producer;  // null: a leaf
  };
  const Slot& slot(std::uint32_t number) const { return slots_[number]; }
  std::uint32_t slot_count() const { return static_cast<std::uint32_t>(slots_.size()); }
  Entry* last() const { return last_; }
  /// Parameters and watched tensors with their slots, in the order of first use.
  struct LeafSlot {
    Tensor tensor;
    std::uint32_t slot;
    std::uint64_t epoch_before;  // of a tape that had computed it
    std::uint32_t slot_before;
  };
  const std::vector<LeafSlot>& leaves() const { return leaves_; }
  /// A slot whose gradient is kept.
  struct Trace {
    std::uint32_t slot;
    Location where;
    bool truncated;
    const void* tape;  // that asked; null: any

    bool belongs_to(const void* which) const { return !tape || tape == which; }
  };
  void trace(const Trace& trace) { traces_.push_back(trace); }
  const std::vector<Trace>& traces() const { return traces_; }
  /// Which list this is, and which filling of it.
  std::uint64_t epoch() const { return epoch_; }
  std::size_t entry_count() const { return entry_count_; }
  std::size_t bytes() const { return arena_.used() + saved_bytes_; }
  /// The most that `bytes()` has been since the last reset.
  std::size_t peak_bytes() const { return std::max(peak_bytes_, bytes()); }
  void reset_peak() { peak_bytes_ = 0; }
  /// Bytes taken for entries and slots.
  std::size_t capacity() const { return arena_.capacity() + slots_.capacity() * sizeof(Slot); }
  /// Whether what lies on the list is more than a processor keeps at hand.
  bool outgrows_caches() const { return bytes() > (std::size_t{1} << 20); }

  /// What the next walk can use for its sums and gradients, so that it need not be allocated.
  struct WalkMemory {
    std::vector<Tensor> sums, outputs;
  } walk_memory;

  int depth = 0;               // open tapes, and functions that run isolated on this list
  bool only_notes = false;     // what comes from outside is adopted, but not tracked unless a tape is open inside
  std::size_t warn_bytes = 0;  // of the outermost tape; 0: has warned

 private:
  const SlotForm* form_of(const Body& body) {
    return last_form_ && last_form_->matches(body) ? last_form_ : new_form(body);
  }
  const SlotForm* new_form(const Body& body);
  std::uint32_t usual_slot(const Body& body) const;
  std::uint32_t input_slot(const OpInfo& op, Body& body, const Location& where);
  std::uint32_t unusual_slot(const OpInfo& op, Body& body, const Location& where);
  void check_overwritten(const char* op, const Tensor& tensor, std::uint32_t version, Location where) const;
  void check_tracked_values(const char* op, const Tensor& tensor, std::uint32_t version, Location where) const;
  void check_forgotten_values(const char* op, const Tensor& tensor, Location where) const;
  int parent_that_opened(std::uint64_t epoch) const;
  void save(Saved* place, Body& body, int number);
  /// What an op that has run is to leave on the list.
  struct Run {
    const OpInfo& op;
    std::span<const Tensor* const> inputs;
    std::span<const std::byte> attributes;
    std::span<Tensor> outputs;
    const Location& where;
  };
  void record(Context& context, const Run& run);
  static bool is_overwritten_by(const Run& run, std::size_t input);
  static void pass_cut_on(std::span<const Tensor* const> inputs, std::span<Tensor> outputs);
  void note_op_without_gradient(const Run& run) const;
  void record_at_length(Context& context, const OpInfo& op, Body& output, const Location& where,
                        std::initializer_list<Body*> inputs);
  Entry* append(Context& context, const Run& run, const std::uint32_t* slots, std::size_t saved, std::size_t hidden);
  void settle_floating(Body& body, std::uint32_t slot) const {
    // Indices beside values have none: no gradient flows through them.
    if (is_floating(body.dtype)) settle(body, slot);
  }
  void link(Entry* entry);
  bool is_of_this_thread(std::uint64_t epoch) const;
  void warn_of_growth() noexcept;
  void clear_slots() noexcept;

  std::uint64_t epoch_;  // list number << 32 | filling
  TapeList* outer_;
  Scopes& scopes_;
  std::unique_ptr<UseLog> own_uses_;  // null: the outer list's
  UseLog& uses_;
  std::unique_ptr<TapeList> inner_;
  Arena arena_;
  Entry* last_ = nullptr;
  const Entry* released_ = nullptr;
  std::vector<Slot> slots_;
  std::vector<LeafSlot> leaves_;
  std::vector<Trace> traces_;  // in the order of the calls
  struct ForeignLeaf {
    std::uint32_t slot, version;  // of its storage when the slot was given
    bool constant = false;
  };
  std::unordered_map<const Body*, ForeignLeaf>
      foreign_leaves_;  // of other threads' and outer lists' tensors; slot 0: only noted
  std::vector<Tensor> adopted_;
  std::vector<std::shared_ptr<const void>> kept_;
  const SlotForm* last_form_ = nullptr;
  bool any_hidden_ = false;              // an untracked tensor may be a foreign leaf, or hold tracked values
  bool wrote_tracked_ = false;           // in this filling or one before
  const TapeList* inherited_ = nullptr;  // that of the parent process
  int parent_ = 0;
  std::size_t entry_count_ = 0;
  std::size_t saved_bytes_ = 0;
  std::size_t peak_bytes_ = 0;  // of fillings that are over
  std::size_t kept_slots_ = 0;
};

}  // namespace reel::detail
