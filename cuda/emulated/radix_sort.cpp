#include "../radix_sort.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "device_access.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

template <class Key>
int sort(const SortBuffers<Key>& buffers, std::int64_t count, int bits) {
  DeviceAccess access;
  Key mask = static_cast<Key>(~Key{0}) >> (8 * static_cast<int>(sizeof(Key)) - bits);
  std::vector<std::pair<Key, std::uint32_t>> pairs(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = {buffers.keys[0][i], buffers.numbers[0][i]};
  std::stable_sort(pairs.begin(), pairs.end(), [mask](auto a, auto b) { return (a.first & mask) < (b.first & mask); });
  int holds = static_cast<int>(count % 2);  // a caller cannot know
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    // What is not the result is not what it was.
    buffers.keys[1 - holds][i] = 0;
    buffers.numbers[1 - holds][i] = 0;
    buffers.keys[holds][i] = pairs[i].first;
    buffers.numbers[holds][i] = pairs[i].second;
  }
  return holds;
}

}  // namespace

int radix_sort(const SortBuffers<std::uint32_t>& buffers, std::int64_t count, int bits) {
  return sort(buffers, count, bits);
}
int radix_sort(const SortBuffers<std::uint64_t>& buffers, std::int64_t count, int bits) {
  return sort(buffers, count, bits);
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
