#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "../core/context.h"
#include "../core/storage.h"
#include "deferred_products.h"
#include "tape_list.h"

namespace reel::detail {

enum class Binary : std::uint8_t;
class Hooks;

/// One reverse pass over a list, from a target to its sources.
class Walk {
 public:
  Walk(Context& context, TapeList& list, std::uint32_t target);
  ~Walk();
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  /// Lets hooks see gradients.
  void attend(Hooks& hooks) {
    hooks_ = &hooks;
    completes_ = true;
  }
  /// Restricts the pass to what leads to these slots, and keeps their gradients. Without it, every leaf is a source.
  void restrict_to(std::span<const std::uint32_t> sources);
  /// `consume`: saved values are released, and the gradients of outputs dropped, as soon as they are used. After
  /// `restrict_to` it visits only what lies between sources and target; without `consume` it may be run again.
  void run(Tensor seed, bool consume);
  /// Before `run`: a gradient that a slot has already, from elsewhere. What is found is added to it.
  void begin_with(std::uint32_t slot, Tensor gradient) { begun_.push_back({slot, std::move(gradient)}); }
  /// What has been summed up for a slot so far, not rounded, beside what came by rows; it is not there afterwards.
  Tensor take_sum(std::uint32_t slot);
  /// Adds a gradient that fits.
  void add_to_sum(std::uint32_t slot, Tensor gradient);
  /// The gradient of a source after `run`; undefined if nothing flowed to it.
  Tensor gradient(std::uint32_t slot);
  /// The same of a parameter: by rows, if it has only come by rows.
  LeafGradient leaf_gradient(std::uint32_t slot, const Tensor& parameter);
  /// A complete gradient, in the slot's dtype, which is not there until `replace` puts it back.
  Tensor take_gradient(std::uint32_t slot);
  /// Puts one that fits in its place.
  void replace(std::uint32_t slot, Tensor gradient) { sum(slot) = std::move(gradient); }
  /// Lets go of the leaves' gradients. After a pass over everything there are no others, and nobody need look for them.
  void let_go_of_leaves();
  /// Lets go of all gradients.
  void forget() {
    sums_.clear();
    row_parts_.clear();
    deferred_.clear();
  }
  /// After `restrict_to`: whether the target is computed from the slot.
  bool depends_on(std::uint32_t slot) const {
    return slot >= lowest_ && slot <= target_ && (marks_[slot - lowest_] & reached);
  }

  /// Whether the slot's gradient leads anywhere.
  bool wants(std::uint32_t slot) const {
    return slot >= lowest_ && (marks_.empty() || (marks_[slot - lowest_] & (leads | source)));
  }
  /// A sum in the slot's dtype.
  Tensor rounded(std::uint32_t slot, Tensor total);
  void add(const Entry& entry, std::uint32_t slot, Tensor gradient);
  /// In the slot's shape; the axes along which the input was broadcast are summed.
  Tensor fitted(const Entry& entry, std::uint32_t slot, Tensor gradient);
  /// Adds a b in place to what has been summed up so far; false if that cannot be.
  bool add_product(std::uint32_t slot, const Tensor& a, const Tensor& b);
  /// Adds a gradient to a part of that, by an op in place on the two; false if there is nothing, or it cannot be changed.
  bool add_to_part(std::uint32_t slot, const OpInfo& op, std::span<const std::byte> attributes, const Tensor& gradient);
  /// The same as add_product for contiguous tensors of the slot's form, which is not one of halves.
  bool add_plain_product(std::uint32_t slot, const Tensor& a, const Tensor& b);
  /// The same with a gradient that is not needed any more; where it can be, the product is formed in its place.
  void add_last_product(std::uint32_t slot, Tensor& gradient, const Tensor& b);
  /// Puts what a kernel makes of a gradient and b in its place, where that can be.
  bool can_work_out_in_place(const Tensor& gradient) const;
  void work_out_in_place(Binary kernel, Tensor& gradient, const Tensor& b);
  /// Whether both are as a gradient of the slot lies in memory, if that is not one of halves.
  bool are_plain(std::uint32_t slot, const Body& a, const Body& b) const;
  /// Adds a gradient that has the slot's form.
  template <class Given>
  void add_up(std::uint32_t slot, Given&& gradient);
  /// Adds leftᵀ right, (n, p)ᵀ (n, q), now or, where that is cheaper, together with later ones.
  void add_transposed_product(const Entry& entry, std::uint32_t slot, const Tensor& left, const Tensor& right);
  /// Whether such a product of n rows would wait for others.
  bool defers(std::uint32_t slot, std::int64_t rows) const;
  /// What waits for a slot, to wait elsewhere.
  DeferredProducts::Panel take_products(std::uint32_t slot) {
    return deferred_.holds(slot) ? deferred_.take(slot) : DeferredProducts::Panel{};
  }
  /// Lets what waited elsewhere wait here.
  void put_products(std::uint32_t slot, const Entry& asks, DeferredProducts::Panel panel);
  /// Leaves what waits at the end of the run for `take_products`.
  void hand_products_on() { hands_products_on_ = true; }
  bool may_defer() const { return may_defer_; }
  /// Works every product out as it comes.
  void defer_nothing() { may_defer_ = false; }
  /// Whether the slot's gradient may come by rows: nothing but the end of the walk looks at it.
  bool takes_rows(std::uint32_t slot) const { return !list_.slot(slot).producer && !context_.has(Context::recording); }
  /// Adds values (n, …) at the indices (n).
  void add_rows(std::uint32_t slot, const Tensor& indices, Tensor values);
  /// All that came by rows for a slot, side by side; undefined if nothing did. It is not there afterwards.
  RowGradient take_rows(std::uint32_t slot);
  /// Adds it to the slot's sum.
  void settle_rows(std::uint32_t slot);
  /// Whether nobody else can see a gradient that the walk holds.
  [[gnu::always_inline]] bool can_change(const Tensor& gradient) const {
    const Body& body = gradient.body();
    // An outer tape may have recorded how it came about.
    return body.contiguous && body.references.unique() && body.storage->references.unique() &&
           !context_.has(Context::recording);
  }
  const TapeList& list() const { return list_; }

 private:
  // Computed from a source, if reached; a source itself; what the target is computed from.
  enum Mark : std::uint8_t { leads = 1, source = 2, reached = 4 };
  /// Puts all that the target is computed from onto the path, the last first.
  void collect_reached();
  bool leads_from_source(const Entry& entry) const;
  /// The slots of an entry's outputs, as far as they matter.
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
  /// Called once for each slot whose gradient is complete: all that uses its tensor has been passed.
  void complete(std::uint32_t slot);
  void pass(Entry& entry, NamedCaller& caller, bool consume);
  /// Completes all outputs; with hooks on its op, visits the entry, too, and returns true.
  bool complete_outputs(Entry& entry, NamedCaller& caller);
  /// Moves the gradients of an entry's outputs to where its gradient finds them.
  void take_gradients(const Entry& entry);
  void visit(Entry& entry);
  /// The same for an entry of one output.
  void visit_single(Entry& entry);
  /// The same for an op with hooks on its kind.
  void visit_hooked(Entry& entry);
  /// Works out what has been deferred for a slot.
  void settle_products(std::uint32_t slot);
  void add_product_now(std::uint32_t slot, const Tensor& left, const Tensor& right);

  Context& context_;
  TapeList& list_;
  std::uint32_t target_;
  std::uint32_t lowest_ = 1;         // nothing below this slot matters
  std::vector<Tensor> sums_;         // of gradients, from slot lowest_ on; those of halves may be f32
  std::vector<std::uint8_t> marks_;  // from slot lowest_ on; empty: everything leads to a source
  std::vector<std::uint32_t> sources_;
  // With marks: the entries that lead from a source to the target, or make one; the last first.
  std::vector<Entry*> path_;
  bool passed_all_ = false, empty_ = false;
  bool completes_ = false;  // somebody wants to know of complete gradients
  Hooks* hooks_ = nullptr;
  std::vector<Tensor> outputs_;  // of the entry being visited
  DeferredProducts deferred_;
  bool may_defer_ = true, hands_products_on_ = false;
  struct RowParts {
    std::vector<Tensor> indices, values;
  };
  struct Begun {
    std::uint32_t slot;
    Tensor gradient;
  };
  std::vector<Begun> begun_;
  std::unordered_map<std::uint32_t, RowParts> row_parts_;  // what came by rows for leaves, beside their sums
};

}  // namespace reel::detail
