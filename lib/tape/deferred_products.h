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
  /// Whether rows wait at less cost than their own product, added to the gradient at once, would take. Of a step of
  /// tanh(h w), differentiated by both, deferred over at once, by rows of h and sizes of w (one thread, Xeon with AVX-512):
  ///
  ///              1     2     4     8    16    32
  ///     32²    0.98  0.95  0.98  1.02  1.02  1.06
  ///     128²   0.61  0.79  0.93  1.05  1.01  1.03
  ///     300²   0.53  0.65  0.79  0.91  0.99  1.00
  ///     512²   0.39  0.52  0.63  0.88  0.94  1.04
  static constexpr bool pays(std::int64_t rows, std::int64_t elements) { return rows <= 32 && rows * 4096 <= elements; }
  /// What waits for one slot at least, at most, and for all, before it is worked out. In between it is as much as the
  /// gradient itself, which is read and written each time; more would only leave the caches.
  static constexpr std::size_t least_bytes = std::size_t{1} << 19, most_bytes = std::size_t{1} << 22,
                               most_bytes_in_all = std::size_t{1} << 26;

  /// What waits for a slot: the first `count` rows of two matrices, and who asked last.
  struct Panel {
    Tensor left, right;
    std::int64_t count = 0;
    const Entry* asked_by = nullptr;

    std::size_t bytes() const;
  };

  bool empty() const { return panels_.empty(); }
  bool holds(std::uint32_t slot) const { return panels_.contains(slot); }
  /// Keeps copies of the rows, (n, p) and (n, q), for a slot of shape (p, q). Returns whether what waits for it should be
  /// worked out before more is added.
  bool append(std::uint32_t slot, const Entry& asks, const Tensor& left, const Tensor& right);
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
