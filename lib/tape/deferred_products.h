#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include <reel/tensor.h>

#include "entry.h"

namespace reel::detail {

/// Products leftᵀ right that are owed to the gradients of weights. A recurrent or tree net multiplies by one weight
/// hundreds of times, a few rows each; the rows of all of them side by side make one product.
class DeferredProducts {
 public:
  /// From so many rows on a product of its own costs less than copying its operands. µs for a step's product, added
  /// to the gradient at once / deferred, of (rows, 128) and (rows, 512): see tools/bench tape.
  static constexpr std::int64_t few_rows = 64;
  /// What waits for one slot, and for all, before it is worked out.
  static constexpr std::size_t most_bytes = std::size_t{4} << 20, most_bytes_in_all = std::size_t{64} << 20;

  /// What waits for a slot: the first `count` rows of two matrices, and who asked last.
  struct Panel {
    Tensor left, right;
    std::int64_t count = 0;
    const Entry* asked_by = nullptr;

    std::size_t bytes() const;
  };

  bool empty() const { return panels_.empty(); }
  bool holds(std::uint32_t slot) const { return panels_.contains(slot); }
  /// Keeps copies of the rows, (n, p) and (n, q), for a slot of shape (p, q).
  void append(std::uint32_t slot, const Entry& asks, const Tensor& left, const Tensor& right);
  /// Whether what waits for the slot should be worked out before more is added.
  bool is_full(std::uint32_t slot) const;
  /// What waits for the slot; it waits no longer.
  Panel take(std::uint32_t slot);
  /// Lets what waited elsewhere wait for a slot for which nothing does.
  void put(std::uint32_t slot, const Entry& asks, Panel panel);
  /// Any slot for which something waits.
  std::uint32_t next() const { return panels_.begin()->first; }
  void clear() {
    panels_.clear();
    bytes_ = 0;
  }

 private:
  static void grow(Panel& panel, std::int64_t rows);

  std::unordered_map<std::uint32_t, Panel> panels_;
  std::size_t bytes_ = 0;
};

}  // namespace reel::detail
