#include "batch_order.h"

#include <algorithm>

#include "../core/op_error.h"
#include "permutation.h"

namespace reel::detail {

std::span<const std::int64_t> Window::batch(std::int64_t number) const {
  auto i = static_cast<std::size_t>(number);
  std::size_t begin = i == 0 ? 0 : ends[i - 1];
  return std::span(items).subspan(begin, ends[i] - begin);
}

// Without the incomplete batch if that is dropped: with lengths too it is the last items of the order, not the longest.
std::int64_t BatchOrder::items_used() const {
  return settings_.drop_last ? size_ - size_ % settings_.batch_size : size_;
}

std::int64_t BatchOrder::window_size() const {
  std::int64_t batches = std::max<std::int64_t>(settings_.bucket_batches, 1);
  // A window larger than the dataset must not overflow.
  if (settings_.batch_size > size_ || batches > size_ / settings_.batch_size) return std::max<std::int64_t>(size_, 1);
  return settings_.batch_size * batches;
}

std::int64_t BatchOrder::windows() const {
  std::int64_t used = items_used();
  return used == 0 ? 0 : (used - 1) / window_size() + 1;
}

std::int64_t BatchOrder::batches() const {
  if (settings_.most_elements > 0) return -1;
  std::int64_t used = items_used();
  return used == 0 ? 0 : (used - 1) / settings_.batch_size + 1;
}

void BatchOrder::cut(const std::vector<Measured>& sorted, std::vector<std::size_t>& ends) const {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    auto count = static_cast<std::int64_t>(i - begin);
    bool full = count == settings_.batch_size;
    // The item is the longest so far, to whose length all are padded.
    if (settings_.most_elements > 0 && count > 0)
      full = full || sorted[i].length > settings_.most_elements / (count + 1);
    if (!full) continue;
    ends.push_back(i);
    begin = i;
  }
  if (!sorted.empty()) ends.push_back(sorted.size());
}

Window BatchOrder::window(std::int64_t epoch, std::int64_t number, const LengthFunction& length,
                          const std::atomic<bool>& stopped, Location where) const {
  Permutation shuffled(size_, settings_.seed, static_cast<std::uint64_t>(epoch));
  std::int64_t begin = number * window_size(), end = std::min(begin + window_size(), items_used());
  Window window;
  for (std::int64_t at = begin; at < end; ++at) window.items.push_back(settings_.shuffle ? shuffled[at] : at);
  if (!length) {
    window.ends.push_back(window.items.size());
    return window;
  }
  std::vector<std::int64_t> lengths;
  std::span<const std::int64_t> items = window.items;
  constexpr std::size_t at_once = 64;  // between looks at `stopped`
  for (; !items.empty(); items = items.subspan(std::min(at_once, items.size()))) {
    if (stopped.load(std::memory_order_relaxed)) return {};
    length(items.first(std::min(at_once, items.size())), lengths);
  }
  std::vector<Measured> sorted;
  for (std::size_t i = 0; i < window.items.size(); ++i) {
    if (lengths[i] < 0) fail<Error>("data::Loader", where, "the length of item {} is {}", window.items[i], lengths[i]);
    sorted.push_back({lengths[i], window.items[i]});
  }
  std::ranges::stable_sort(sorted, {}, &Measured::length);
  std::vector<std::size_t> ends;
  cut(sorted, ends);
  Permutation order(static_cast<std::int64_t>(ends.size()),
                    derived_key(settings_.seed, static_cast<std::uint64_t>(epoch), ~static_cast<std::uint64_t>(number)),
                    0);
  window.items.clear();
  for (std::size_t i = 0; i < ends.size(); ++i) {
    auto batch = settings_.shuffle ? static_cast<std::size_t>(order[static_cast<std::int64_t>(i)]) : i;
    for (std::size_t at = batch == 0 ? 0 : ends[batch - 1]; at < ends[batch]; ++at)
      window.items.push_back(sorted[at].item);
    window.ends.push_back(window.items.size());
  }
  return window;
}

}  // namespace reel::detail
