#include "../libraries/sort_pairs.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "device_access.h"
#include "stream.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

template <class Key>
Keyed<Key> sort(Keyed<Key> given, Keyed<Key> other, std::int64_t count) {
  give_to_stream(current_stream(), [=] {
    DeviceAccess access;
    std::vector<std::int64_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t a, std::int64_t b) { return given.keys[a] < given.keys[b]; });
    for (std::size_t i = 0; i < order.size(); ++i) {
      other.keys[i] = given.keys[order[i]];
      other.numbers[i] = given.numbers[order[i]];
    }
  });
  return other;
}

}  // namespace

Keyed<std::uint32_t> sort_pairs(Keyed<std::uint32_t> given, Keyed<std::uint32_t> other, std::int64_t count, int) {
  return sort(given, other, count);
}

Keyed<std::uint64_t> sort_pairs(Keyed<std::uint64_t> given, Keyed<std::uint64_t> other, std::int64_t count, int) {
  return sort(given, other, count);
}

}  // namespace reel::detail::inline REEL_TARGET
