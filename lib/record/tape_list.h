#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <reel/tensor.h>

#include "arena.h"
#include "entry.h"
#include "origin.h"
#include "scopes.h"
#include "use_log.h"

namespace reel::detail {

struct Context;
class Heap;

/// A thread's Wengert list: entries in the order of execution, and the slots, by index, of the tracked tensors.
class TapeList {
 public:
  /// A thread's own list.
  explicit TapeList(Scopes& scopes);
  /// The inner list of another list.
  explicit TapeList(TapeList& outer);
  /// For a forked process: replaces the list on which its parent, with process id `parent`, has tapes open.
  TapeList(const TapeList& inherited, int parent);

  /// Records an op that has run, if one of its inputs is tracked.
  /// Throws: TapeError for an input of a finished tape or of another thread's.
  void record(Context& context, Call& call);
  /// Records an op that has no attributes, keeps no shapes, and whose output has its inputs' shape and dtype.
  /// Throws: TapeError for an input of a finished tape or of another thread's.
  template <class... Input>
  void record(Context& context, const OpInfo& op, Body& output, const Location& where, Input&... inputs);

  /// Records that a call, which a group has run with others, has used its untracked operands.
  void record_uses(Context& context, const Call& call) noexcept;

  /// A value to save, with the index by which `Gradient` finds it.
  struct ToSave {
    Tensor tensor;
    int number;
  };
  /// Records an op that chooses itself what it saves. `hidden`: results that the call does not show; their slots follow
  /// those of the outputs. Returns true if the op was recorded. Throws: as `record`.
  bool record_saving(Context& context, const Call& call, const OpInfo& op, std::span<const ToSave> values,
                     std::span<const Tensor> hidden);

  /// Called before an op overwrites x. Returns true if the new values of x will be tracked, because one of the call's
  /// inputs is. Throws: TapeError as `record`; for a parameter, a watched tensor, and what another thread's tape
  /// computed.
  bool prepare_overwrite(const Call& call, const Tensor& x);
  /// Reserves the memory for recording an op that overwrites, because such an op cannot be undone once it has run.
  /// Throws: MemoryError in the name of `op`.
  void make_room(const char* op, Location where);
  /// Called after tracked values were written to x, or untracked ones to a tracked tensor: from now on older tensors
  /// that share its elements are refused, unless `mark_current` is called for them.
  void mark_tracked_write(const Body& x);
  /// Detaches a tensor from the slot that this list computed for it, if any, and forgets how ops have used its old
  /// values.
  void forget(Body& body) const;
  /// Assigns a slot to a tensor with its present values.
  void assign_slot(Body& body, std::uint32_t slot) const {
    body.slot = slot;
    mark_current(body);
    body.epoch.store(epoch_, std::memory_order_relaxed);
  }
  /// Marks the tensor's slot, or its lack of one, as valid for its present values.
  static void mark_current(Body& body) { body.slot_version = body.storage->version.load(std::memory_order_relaxed); }

  /// Returns true if the tensor has a slot on this list.
  bool is_live(const Body& body) const { return slot_of(body) != 0; }
  /// Returns true if this epoch of the list gave the tensor a slot of its own.
  bool has_given_slot(const Body& body) const { return body.epoch.load(std::memory_order_relaxed) == epoch_; }
  /// Returns true if a live tensor is a parameter or watched, not computed.
  bool is_leaf(const Body& body) const { return !slots_[slot_of(body)].producer; }
  /// The tensor's slot; 0 if it has none that is live.
  std::uint32_t slot_of(const Body& body) const {
    if (body.epoch.load(std::memory_order_relaxed) == epoch_) return body.slot;
    return foreign_leaves_.empty() ? 0 : foreign_slot_of(body);
  }
  /// Returns true if `record` might refuse the tensor as an operand: then its op is to run at once.
  bool may_refuse(const Body& body) const;
  /// Returns true if a tensor with a live slot was overwritten through a tensor that shares its elements.
  bool is_overwritten(const Body& body) const;
  /// The slot of a parameter or of a tensor to watch; made if there is none.
  /// Throws: TapeError for what another thread's tape computed.
  std::uint32_t track(const char* op, const Tensor& leaf, Location where);
  /// Throws: TapeError if an op has used the tensor untracked since a period began; see UseLog::has_used.
  void check_unused(const char* op, const Tensor& tensor, std::uint32_t since, Location where) const;
  /// The slot of a tensor that is an operand of `op`.
  /// Throws: TapeError if it has none that is live, or was overwritten.
  std::uint32_t tracked_slot(const char* op, const Tensor& tensor, Location where) const;
  /// The bit in the scope id of a tensor that stop_gradient has made.
  static constexpr std::uint32_t constant_mark = std::uint32_t{1} << 31;
  /// The inner list for isolated functions, during which this list waits. Made once and kept.
  TapeList& inner();
  /// Called when this list begins to run an isolated function: untracked tensors may be tensors that an outer list
  /// tracks.
  void look_at_hidden() noexcept;
  /// The list that waits while this one is used; null for a thread's own list.
  TapeList* outer() const { return outer_; }
  Scopes& scopes() const { return scopes_; }
  UseLog& uses() const { return uses_; }
  /// On an inner list: makes a leaf of a tensor that an outer list tracks, or of a parameter; it keeps its outer slot.
  std::uint32_t adopt(const char* op, const Tensor& tensor, Location where);
  /// On an inner list: adopts a tensor that is treated as a constant.
  void adopt_constant(const char* op, const Tensor& tensor, Location where);
  /// The tensors adopted from outside, in the order of first use.
  const std::vector<Tensor>& adopted() const { return adopted_; }
  /// Returns true if an outer list tracks the tensor, or it is a parameter.
  bool is_tracked_outside(const Body& body) const;
  /// Marks a slot as that of a view which several examples have taken of one tensor.
  void mark_shared(std::uint32_t slot) { shared_.push_back(slot); }
  /// Throws: TapeError if the tensor's slot is marked as shared, so that its gradient would be that of all examples.
  void check_own(const char* op, const Tensor& tensor, Location where) const;
  /// Throws a TapeError that says why a tensor with a slot on another list cannot be used on this one.
  [[noreturn]] void refuse(const char* op, const Tensor& tensor, Location where) const;
  /// Throws a TapeError that says why a tensor without a slot on this list cannot be differentiated.
  [[noreturn]] void refuse_target(const char* op, const Tensor& target, Location where) const;
  /// Throws a TapeError that says why a tape over another list, or one that has ended, cannot be used.
  [[noreturn]] void refuse_tape(const char* function, const TapeList& other, Location where) const;

  /// Sets `depth` and ends what belongs to tapes that are no longer open; clears the list if none is open.
  void update_depth(const Scopes& scopes) noexcept;
  /// Ends all tapes; called when the thread ends.
  void end() noexcept;
  /// Clears the list: entries, slots, and the slots' marks in tensors.
  void clear() noexcept;
  /// Returns the memory that is kept for entries to the system, if there are no entries.
  void release_memory() noexcept;
  /// Keeps an object that entries point to alive until the list is cleared.
  void keep(std::shared_ptr<const void> object) { kept_.push_back(std::move(object)); }
  /// Releases an entry's saved values.
  static void release_saved(Entry& entry) noexcept {
    std::destroy_n(entry.saved(), entry.saved_count);
    // The layout behind the saved values is not read after this.
    entry.saved_count = 0;
  }
  /// Records that the saved values of an entry and of all before it are released.
  void mark_released(const Entry* last) { released_ = last; }

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
    std::uint64_t epoch_before;  // the epoch of a tape that had computed it
    std::uint32_t slot_before;
  };
  const std::vector<LeafSlot>& leaves() const { return leaves_; }
  /// A slot whose gradient is kept.
  struct Trace {
    std::uint32_t slot;
    Location where;
    bool truncated;
    const void* tape;  // the tape that asked; null: any

    bool belongs_to(const void* which) const { return !tape || tape == which; }
  };
  void trace(const Trace& trace) { traces_.push_back(trace); }
  /// Records that a hook of a tape sees the calls of an op, so that batch_map runs each by itself.
  void hook(std::string_view op, const void* tape) { hooked_ops_.push_back({std::string(op), tape}); }
  bool is_hooked(const char* op) const {
    return !hooked_ops_.empty() && std::ranges::find(hooked_ops_, op, &HookedOp::name) != hooked_ops_.end();
  }
  const std::vector<Trace>& traces() const { return traces_; }
  /// Returns the former traces.
  std::vector<Trace> exchange_traces(std::vector<Trace> traces) { return std::exchange(traces_, std::move(traces)); }
  /// The list's id and its epoch in one number.
  std::uint64_t epoch() const { return epoch_; }
  static constexpr std::uint64_t list_id(std::uint64_t epoch) { return epoch >> 32; }
  std::size_t entry_count() const { return entry_count_; }
  std::size_t bytes() const { return arena_.used() + saved_bytes_; }
  /// The largest `bytes()` since the last reset.
  std::size_t peak_bytes() const { return std::max(peak_bytes_, bytes()); }
  void reset_peak() { peak_bytes_ = 0; }
  /// Bytes allocated for entries and slots.
  std::size_t capacity() const { return arena_.capacity() + slots_.capacity() * sizeof(Slot); }
  /// Returns true if the list's memory exceeds a processor's caches.
  bool outgrows_caches() const { return bytes() > (std::size_t{1} << 20); }

  /// Buffers that the next backward pass reuses for its sums and gradients.
  struct PassMemory {
    std::vector<Tensor> sums, outputs;
  } pass_memory;

  int depth = 0;                    // open tapes, and isolated functions on this list
  bool only_collects_uses = false;  // tensors from outside are adopted, but not tracked unless a tape is open inside
  std::size_t warn_bytes = 0;       // of the outermost tape; 0: it has already warned

 private:
  friend struct RecordLayout;

  const SlotForm* form_of(const Body& body) {
    return last_form_ && last_form_->matches(body) ? last_form_ : new_form(body);
  }
  const SlotForm* new_form(const Body& body);
  /// The slot of a tensor of another thread or list.
  std::uint32_t foreign_slot_of(const Body& body) const;
  std::uint32_t usual_slot(const Body& body) const;
  std::uint32_t input_slot(const OpInfo& op, Body& body, const Location& where);
  std::uint32_t unusual_slot(const OpInfo& op, Body& body, const Location& where);
  /// Records that an op has used an untracked tensor. A tensor from outside is skipped: the outer list tracks it or will.
  void record_use(Context& context, Body& body, const char* op, const Location& where) noexcept {
    if (foreign_leaves_.empty() || !foreign_leaves_.contains(&body)) uses_.record_use(context, body, op, where);
  }
  std::uint64_t mark_of(const Body& body) const;
  void check_overwritten(const char* op, const Tensor& tensor, std::uint32_t version, Location where) const;
  void check_tracked_values(const char* op, const Tensor& tensor, std::uint32_t version, Location where) const;
  void check_forgotten_values(const char* op, const Tensor& tensor, Location where) const;
  int parent_that_opened(std::uint64_t epoch) const;
  void save(Saved* place, Body& body, int number);
  /// An op that has run, with all that is to be recorded of it.
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
  void mark_cut_outputs(const Run& run) const;
  void record_at_length(Context& context, const OpInfo& op, Body& output, const Location& where,
                        std::initializer_list<Body*> inputs);
  Entry* append(Context& context, const Run& run, const std::uint32_t* slots, std::size_t saved, std::size_t hidden);
  void assign_floating_slot(Body& body, std::uint32_t slot) const {
    // Integer outputs, such as indices beside values, get no slot: no gradient flows through them.
    if (is_floating(body.dtype)) assign_slot(body, slot);
  }
  void link(Entry* entry);
  bool is_of_this_thread(std::uint64_t epoch) const;
  void warn_of_growth() noexcept;
  void clear_slots() noexcept;

  std::uint64_t epoch_;  // list id << 32 | filling
  TapeList* outer_;
  Scopes& scopes_;
  std::unique_ptr<UseLog> own_uses_;  // null: the outer list's log is used
  UseLog& uses_;
  std::unique_ptr<TapeList> inner_;
  Arena arena_;
  Entry* last_ = nullptr;
  const Entry* released_ = nullptr;
  std::vector<Slot> slots_;
  std::vector<LeafSlot> leaves_;
  std::vector<Trace> traces_;          // in the order of the calls
  std::vector<std::uint32_t> shared_;  // marked slots, ascending
  struct HookedOp {
    std::string name;
    const void* tape;
  };
  std::vector<HookedOp> hooked_ops_;
  struct ForeignLeaf {
    std::uint32_t slot, version;  // version: of its storage when the slot was given
    bool constant = false;
  };
  std::unordered_map<const Body*, ForeignLeaf>
      foreign_leaves_;  // tensors of other threads' and outer lists; slot 0: only collected
  std::vector<Tensor> adopted_;
  std::vector<std::shared_ptr<const void>> kept_;
  const SlotForm* last_form_ = nullptr;
  bool any_hidden_ = false;              // an untracked tensor may be a foreign leaf, or hold tracked values
  bool wrote_tracked_ = false;           // in this epoch or an earlier one
  const TapeList* inherited_ = nullptr;  // the list of the parent process
  int parent_ = 0;
  std::size_t entry_count_ = 0;
  std::size_t saved_bytes_ = 0;
  std::size_t peak_bytes_ = 0;  // of past epochs
  std::size_t kept_slots_ = 0;
};

}  // namespace reel::detail
