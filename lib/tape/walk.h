#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "../core/context.h"
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
  /// The gradient of a source after `run`; undefined if nothing flowed to it.
  Tensor gradient(std::uint32_t slot) const { return slot <= target_ ? gradients_[slot] : Tensor{}; }

  /// Whether the slot's gradient leads anywhere.
  bool wants(std::uint32_t slot) const { return slot != 0 && (marks_.empty() || marks_[slot] != 0); }
  void add(const Entry& entry, std::uint32_t slot, Tensor gradient);
  /// Adds a b in place to what has been summed up so far; false if that cannot be.
  bool add_product(std::uint32_t slot, const Tensor& a, const Tensor& b);
  const TapeList& list() const { return list_; }

 private:
  // A slot computed from a source; a source itself.
  enum Mark : std::uint8_t { leads = 1, source = 2 };
  bool has_gradient(const Entry& entry) const;
  bool can_change(const Tensor& sum) const;
  void visit(Entry& entry);

  Context& context_;
  TapeList& list_;
  std::uint32_t target_;
  std::uint32_t lowest_ = 1;
  std::vector<Tensor> gradients_;    // by slot
  std::vector<std::uint8_t> marks_;  // by slot; empty: everything leads to a source
  std::vector<Tensor> outputs_;      // of the entry being visited
};

}  // namespace reel::detail
