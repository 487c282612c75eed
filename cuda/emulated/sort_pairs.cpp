#include "../sort_pairs.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "device_access.h"

namespace reel::detail {
inline namespace REEL_TARGET {

KeyedNumbers sort_pairs(KeyedNumbers given, KeyedNumbers other, std::int64_t count, int) {
  DeviceAccess access;
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return given.keys[a] < given.keys[b]; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    other.keys[i] = given.keys[order[i]];
    other.numbers[i] = given.numbers[order[i]];
  }
  return other;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
