#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "../core/context.h"
#include "../core/storage.h"
#include "../record/tape_list.h"
#include "deferred_products.h"

namespace reel::detail {

class Hooks;

/// One reverse pass over a tape list, from a target to its sources.
class BackwardPass : Immovable {
 public:
  BackwardPass(Context& context, TapeList& list, std::uint32_t target);
  ~BackwardPass();

  /// Registers hooks that observe gradients during the pass.
  void attend(Hooks& hooks) {
    hooks_ = &hooks;
    completes_ = true;
  }
  /// Restricts the pass to the entries that lead to these slots, and keeps their gradients. Without it, every leaf is a
  /// source.
  void restrict_to(std::span<const std::uint32_t> sources);
  /// Runs the pass from the gradient `seed` of the target. `consume`: saved values are released, and the gradients of
  /// outputs dropped, as soon as they are used. After `restrict_to` the pass visits only entries between sources and
  /// target; without `consume` it may be run again.
  void run(Tensor seed, bool consume);
  /// Before `run`: sets the gradient that a slot has already from elsewhere. The pass adds to it.
  void begin_with(std::uint32_t slot, Tensor gradient) { begun_.push_back({slot, std::move(gradient)}); }
  /// Moves out what has been accumulated for a slot so far, unrounded and without the gradients given by rows.
  Tensor take_sum(std::uint32_t slot);
  /// Adds a gradient of the slot's shape and dtype to its sum.
  void add_to_sum(std::uint32_t slot, Tensor gradient);
  /// The gradient of a source after `run`; undefined if nothing flowed to it.
  Tensor gradient(std::uint32_t slot);
  /// The gradient of a parameter after `run`: by rows if only rows were added to it.
  LeafGradient leaf_gradient(std::uint32_t slot, const Tensor& parameter);
  /// Moves the complete gradient of a slot out, in the slot's dtype, until `replace` puts it back.
  Tensor take_gradient(std::uint32_t slot);
  /// Sets the gradient of a slot, of its shape and dtype.
  void replace(std::uint32_t slot, Tensor gradient) { sum(slot) = std::move(gradient); }
  /// Releases the leaves' gradients. After a pass over the whole list there are no others, so that nothing else is
  /// searched.
  void release_leaves();
  /// Releases all gradients.
  void forget() {
    sums_.clear();
    row_parts_.clear();
    deferred_.clear();
  }
  /// After `restrict_to`: returns true if the target is computed from the slot.
  bool depends_on(std::uint32_t slot) const {
    return slot >= lowest_ && slot <= target_ && (marks_[slot - lowest_] & reached);
  }

  /// Returns true if the slot's gradient is needed: it belongs to a source or leads to one.
  bool wants(std::uint32_t slot) const {
    return slot >= lowest_ && (marks_.empty() || (marks_[slot - lowest_] & (leads | source)));
  }
  /// Returns a sum rounded to the slot's dtype.
  Tensor rounded(std::uint32_t slot, Tensor total);
  void add(const Entry& entry, std::uint32_t slot, Tensor gradient);
  /// Returns the gradient in the slot's shape: axes along which the input was broadcast are summed.
  Tensor fitted(const Entry& entry, std::uint32_t slot, Tensor gradient);
  /// Rows of the gradient of a slot.
  struct Rows {
    std::uint32_t slot = 0;  // 0: none
    std::int64_t start = 0, count = 0;
  };
  /// For a slot whose tensor is a part of another one, divided by `unbatch`: its rows of that one's gradient. Later ops may
  /// have read the rows without the part, so that the part's gradient is complete only with theirs.
  Rows rows_of_part(std::uint32_t slot) const;
  /// The rows to which a gradient of a part can be added in place; none if they cannot be changed.
  Rows rows_behind(std::uint32_t slot) const;
  /// Adds a contiguous gradient of the rows' dtype, no half, to the rows.
  void add_to_rows(const Rows& rows, const View& gradient);
  /// Adds a b to the slot's sum in place; returns false if that is not possible.
  bool add_product(std::uint32_t slot, const Tensor& a, const Tensor& b);
  /// Adds a gradient to a part of the slot's sum, by an in-place op on the two; returns false if there is no sum or it
  /// cannot be changed.
  bool add_to_part(std::uint32_t slot, const OpInfo& op, std::span<const std::byte> attributes, const Tensor& gradient);
  /// Adds a b to the slot's sum in place, for contiguous tensors of the slot's shape and dtype, which is not a half;
  /// returns false if that is not possible.
  bool add_plain_product(std::uint32_t slot, const Tensor& a, const Tensor& b);
  /// Adds `gradient` b to the slot's sum, where `gradient` is not needed any more: the product may overwrite it.
  void add_last_product(std::uint32_t slot, Tensor& gradient, const Tensor& b);
  /// Overwrites a gradient with a kernel's result for it and b; the first function returns true if that is allowed.
  bool can_overwrite(const Tensor& gradient) const;
  void compute_in_place(int kernel, Tensor& gradient, const Tensor& b);
  /// Returns true if both are contiguous and have the slot's shape and dtype, which is not a half.
  bool are_plain(std::uint32_t slot, const Body& a, const Body& b) const;
  /// Adds a gradient of the slot's shape and dtype to the slot's sum.
  template <class Given>
  void add_up(std::uint32_t slot, Given&& gradient);
  /// Adds leftᵀ right, (n, p)ᵀ (n, q), to the slot's sum: now or, where that is cheaper, together with later products.
  void add_transposed_product(const Entry& entry, std::uint32_t slot, const Tensor& left, const Tensor& right);
  /// Returns true if a transposed product of n rows would be deferred.
  bool defers(std::uint32_t slot, std::int64_t rows) const;
  /// Moves the deferred products of a slot out, for another backward pass.
  DeferredProducts::Panel take_products(std::uint32_t slot) {
    return deferred_.holds(slot) ? deferred_.take(slot) : DeferredProducts::Panel{};
  }
  /// Adopts the deferred products of another backward pass.
  void put_products(std::uint32_t slot, const Entry& asks, DeferredProducts::Panel panel);
  /// Keeps the products that are deferred at the end of the run for `take_products`.
  void hand_products_on() { hands_products_on_ = true; }
  bool may_defer() const { return may_defer_; }
  /// Computes every product at once instead of deferring it.
  void defer_nothing() { may_defer_ = false; }
  /// Returns true if the slot's gradient may be given by rows: only the end of the backward pass reads it.
  bool takes_rows(std::uint32_t slot) const { return !list_.slot(slot).producer && !context_.has(Context::recording); }
  /// Adds values (n, …) to the rows at the indices (n) of the slot's gradient.
  void add_rows(std::uint32_t slot, const Tensor& indices, Tensor values);
  /// Moves out the concatenated row gradients of a slot; undefined if there are none.
  RowGradient take_rows(std::uint32_t slot);
  /// Adds the slot's row gradients to its sum.
  void add_rows_to_sum(std::uint32_t slot);
  /// Returns true if no other handle sees a gradient that the backward pass holds, so that it may be changed in place.
  [[gnu::always_inline]] bool can_change(const Tensor& gradient) const {
    return gradient.body().contiguous && is_only_handle(gradient);
  }
  [[gnu::always_inline]] bool is_only_handle(const Tensor& gradient) const {
    const Body& body = gradient.body();
    // An outer tape may have recorded how the gradient was computed.
    return body.references.unique() && body.storage->references.unique() && !context_.has(Context::recording);
  }
  const TapeList& list() const { return list_; }
  /// Returns true if the run releases the saved values of each entry that it has visited.
  bool consumes() const { return consumes_; }

 private:
  // leads: computed from a source and, if reached, on the path; source: a source itself; reached: the target is
  // computed from it.
  enum Mark : std::uint8_t { leads = 1, source = 2, reached = 4 };
  void run_entries(Tensor seed, bool consume);
  /// Puts all entries from which the target is computed onto the path, the last first.
  void collect_reached();
  bool reaches_parts(const Entry* entry) const;
  bool leads_from_source(const Entry& entry) const;
  /// The slots of an entry's outputs, from `lowest_` on.
  std::uint32_t begin_of(const Entry& entry) const { return std::max(entry.first_output, lowest_); }
  std::uint32_t end_of(const Entry& entry) const {
    return std::min(entry.first_output + entry.output_count, target_ + 1);
  }
  std::uint8_t& mark(std::uint32_t slot) { return marks_[slot - lowest_]; }
  std::uint8_t mark(std::uint32_t slot) const { return marks_[slot - lowest_]; }
  Tensor& sum(std::uint32_t slot) { return sums_[slot - lowest_]; }
  const Tensor& sum(std::uint32_t slot) const { return sums_[slot - lowest_]; }
  void add_up_slowly(std::uint32_t slot, Tensor gradient);
  bool has_gradient(const Entry& entry) const;
  /// Called once for each slot when its gradient is complete: all entries that use its tensor have been visited.
  void complete(std::uint32_t slot);
  void pass(Entry& entry, NamedCaller& caller, bool consume);
  /// Moves the gradient of a divided tensor to its parts.
  void split_among_parts(const Entry& entry);
  /// Completes all outputs of an entry. If its op has hooks, also visits the entry and returns true.
  bool complete_outputs(Entry& entry, NamedCaller& caller);
  /// Completes the leaves whose slots are `slot` or greater: their uses have all been visited.
  void complete_leaves_from(std::uint32_t slot);
  /// Moves the gradients of an entry's outputs to where its gradient function reads them.
  void take_gradients(const Entry& entry);
  void visit(Entry& entry);
  /// Visits an entry whose gradients `take_gradients` has moved.
  void visit_taken(Entry& entry);
  /// Visits an entry of one output.
  void visit_single(Entry& entry);
  /// Visits an entry whose op has hooks, and whose gradients `take_gradients` has moved.
  void visit_hooked(Entry& entry);
  /// Computes the deferred products of a slot.
  void compute_deferred_products(std::uint32_t slot);
  void add_product_now(std::uint32_t slot, const Tensor& left, const Tensor& right);

  Context& context_;
  TapeList& list_;
  std::uint32_t target_;
  std::uint32_t lowest_ = 1;         // slots below this one are not needed
  std::vector<Tensor> sums_;         // gradients from slot lowest_ on; sums of halves may be f32
  std::vector<std::uint8_t> marks_;  // from slot lowest_ on; empty: everything leads to a source
  std::vector<std::uint32_t> sources_;
  // With marks: the entries that lead from a source to the target, or produce a source; the last first.
  std::vector<Entry*> path_;
  bool passed_all_ = false, empty_ = false;
  bool completes_ = false;  // complete gradients are observed by hooks, traces or a listener
  Hooks* hooks_ = nullptr;
  std::size_t incomplete_leaves_ = 0;  // of the list's leaves, from the first, those whose hooks have not been called
  std::vector<Tensor> outputs_;        // of the entry being visited
  DeferredProducts deferred_;
  bool may_defer_ = true, hands_products_on_ = false, consumes_ = false;
  struct RowParts {
    std::vector<Tensor> indices, values;
  };
  struct Begun {
    std::uint32_t slot;
    Tensor gradient;
  };
  std::vector<Begun> begun_;
  std::unordered_map<std::uint32_t, RowParts> row_parts_;  // row gradients of leaves, kept apart from their sums
};

}  // namespace reel::detail
