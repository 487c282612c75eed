#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include <reel/data/loader_engine.h>

namespace reel::detail {

/// The batches of one window, in the order in which they are handed out.
struct Window {
  std::vector<std::int64_t> items;  ///< the indices of all batches' items, one batch after another
  std::vector<std::size_t> ends;    ///< where each batch ends in `items`

  std::int64_t batches() const { return static_cast<std::int64_t>(ends.size()); }
  std::span<const std::int64_t> batch(std::int64_t number) const;
};

/// The order of the items of a Loader. An epoch consists of windows, each of which is formed without the others: of
/// one batch, or with lengths of `bucket_batches`.
class BatchOrder {
 public:
  /// `size`: the number of items.
  BatchOrder(const LoaderSettings& settings, std::int64_t size) : settings_(settings), size_(size) {}

  /// The number of windows of an epoch.
  std::int64_t windows() const;
  /// The number of batches of an epoch; −1 if it depends on the lengths.
  std::int64_t batches() const;
  /// Forms a window of an epoch; empty if `stopped` becomes true. Throws: what `length` throws; Error for a negative one.
  Window window(std::int64_t epoch, std::int64_t number, const LengthFunction& length, const std::atomic<bool>& stopped,
                Location where) const;

 private:
  struct Measured {
    std::int64_t length, item;
  };
  std::int64_t items_used() const;
  std::int64_t window_size() const;
  void cut(const std::vector<Measured>& sorted, std::vector<std::size_t>& ends) const;

  LoaderSettings settings_;
  std::int64_t size_;
};

}  // namespace reel::detail
