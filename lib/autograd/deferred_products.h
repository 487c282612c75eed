#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include <reel/tensor.h>

#include "../record/entry.h"

namespace reel::detail {

/// Deferred products leftᵀ right for the gradients of weights. A recurrent or tree net multiplies by one weight
/// hundreds of times, a few rows each; this class collects the rows, so that all of them make one product.
class DeferredProducts {
 public:
  /// Returns true if deferring `rows` rows costs less than computing their product and adding it to the gradient at
  /// once, which is bound by reading and writing the gradient: see "Deferred products" in tools/benchmark/README.md.
  static constexpr bool pays(std::int64_t rows, std::int64_t elements) { return rows <= 32 && rows * 4096 <= elements; }
  /// Bytes that are collected for one slot at least, at most, and for all slots, before a product is computed. In
  /// between, the limit is the size of the gradient itself, which is read and written by each product; more would leave
  /// the caches.
  static constexpr std::size_t least_bytes = std::size_t{1} << 19, most_bytes = std::size_t{1} << 22,
                               most_bytes_in_all = std::size_t{1} << 26;

  /// The rows deferred for a slot: the first `count` rows of two matrices, and the entry that added last.
  struct Panel {
    Tensor left, right;
    std::int64_t count = 0;
    const Entry* asked_by = nullptr;

    std::size_t bytes() const;
  };

  bool empty() const { return panels_.empty(); }
  bool holds(std::uint32_t slot) const { return panels_.contains(slot); }
  /// Copies the rows, (n, p) and (n, q), for a slot of shape (p, q). Returns true if the slot's product should be
  /// computed before more rows are added.
  bool append(std::uint32_t slot, const Entry& asks, const Tensor& left, const Tensor& right);
  /// Moves the deferred rows of the slot out.
  Panel take(std::uint32_t slot);
  /// Adopts the deferred rows of another pass for a slot that has none here.
  void put(std::uint32_t slot, const Entry& asks, Panel panel);
  /// A slot that has deferred rows.
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
