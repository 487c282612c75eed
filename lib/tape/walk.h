#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "../core/context.h"
#include "../core/storage.h"
#include "tape_list.h"

namespace reel::detail {

/// One reverse pass over a list, from a target to its sources.
class Walk {
 public:
  Walk(Context& context, TapeList& list, std::uint32_t target);

  /// Restricts the pass to what leads to these slots, and keeps their gradients. Without it, every leaf is a source.
  void restrict_to(std::span<const std::uint32_t> sources);
  /// `consume`: saved values are released, and the gradients of outputs dropped, as soon as they are used.
  void run(Tensor seed, bool consume);
  /// Before `run`: a gradient that a slot has already, from elsewhere. What is found is added to it.
  void begin_with(std::uint32_t slot, Tensor gradient) { begun_.push_back({slot, std::move(gradient)}); }
  /// What has been summed up for a slot so far, not rounded; it is not there afterwards.
  Tensor take_sum(std::uint32_t slot);
  /// Adds a gradient that fits.
  void add_to_sum(std::uint32_t slot, Tensor gradient);
  /// The gradient of a source after `run`; undefined if nothing flowed to it.
  Tensor gradient(std::uint32_t slot);
  /// The same of a parameter: by rows, if it has only come by rows.
  Leaf leaf_gradient(std::uint32_t slot, const Tensor& parameter);
  /// Lets go of all gradients.
  void forget() {
    sums_.clear();
    row_parts_.clear();
  }
  /// After `restrict_to`: whether the target is computed from the slot.
  bool depends_on(std::uint32_t slot) const {
    return slot >= lowest_ && slot <= target_ && (marks_[slot - lowest_] & reached);
  }
  /// After `restrict_to`: whether the target is computed from any source.
  bool depends_on_sources() const { return marks_.back() & (leads | source); }

  /// Whether the slot's gradient leads anywhere.
  bool wants(std::uint32_t slot) const {
    return slot >= lowest_ && (marks_.empty() || (marks_[slot - lowest_] & (leads | source)));
  }
  void add(const Entry& entry, std::uint32_t slot, Tensor gradient);
  /// Adds a b in place to what has been summed up so far; false if that cannot be.
  bool add_product(std::uint32_t slot, const Tensor& a, const Tensor& b);
  /// Whether the slot's gradient may come by rows: nothing but the end of the walk looks at it.
  bool takes_rows(std::uint32_t slot) const { return !list_.slot(slot).producer && !context_.has(Context::recording); }
  /// Adds values (n, …) at the indices (n).
  void add_rows(std::uint32_t slot, Tensor indices, Tensor values);
  /// Whether nobody else can see a gradient that the walk holds.
  bool can_change(const Tensor& gradient) const;
  const TapeList& list() const { return list_; }

 private:
  // Computed from a source; a source itself; what the target is computed from.
  enum Mark : std::uint8_t { leads = 1, source = 2, reached = 4 };
  std::span<const std::uint32_t> inputs_of(std::uint32_t slot) const;
  std::uint8_t& mark(std::uint32_t slot) { return marks_[slot - lowest_]; }
  std::uint8_t mark(std::uint32_t slot) const { return marks_[slot - lowest_]; }
  Tensor& sum(std::uint32_t slot) { return sums_[slot - lowest_]; }
  const Tensor& sum(std::uint32_t slot) const { return sums_[slot - lowest_]; }
  void add_up(std::uint32_t slot, DType dtype, Tensor&& gradient);
  /// A sum in the slot's dtype.
  Tensor rounded(std::uint32_t slot, Tensor total);
  bool has_gradient(const Entry& entry) const;
  /// Called once for each slot whose gradient is complete: all that uses its tensor has been passed.
  void complete(std::uint32_t slot);
  /// All that came by rows for a slot, side by side; undefined if nothing did.
  RowGradient rows_of(std::uint32_t slot) const;
  void visit(Entry& entry);

  Context& context_;
  TapeList& list_;
  std::uint32_t target_;
  std::uint32_t lowest_ = 1;         // nothing below this slot matters
  std::vector<Tensor> sums_;         // of gradients, from slot lowest_ on; those of halves may be f32
  std::vector<std::uint8_t> marks_;  // from slot lowest_ on; empty: everything leads to a source
  bool completes_ = false;           // somebody wants to know of complete gradients
  std::vector<Tensor> outputs_;      // of the entry being visited
  struct RowPart {
    std::uint32_t slot;
    Tensor indices, values;
  };
  struct Begun {
    std::uint32_t slot;
    Tensor gradient;
  };
  std::vector<Begun> begun_;
  std::vector<RowPart> row_parts_;  // gradients of leaves that came by rows, beside their sums
};

}  // namespace reel::detail
