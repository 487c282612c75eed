#include "sort_pairs.h"

#include <cub/device/device_radix_sort.cuh>

#include <reel/error.h>

#include "../device/device.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

void check(cudaError_t status) {
  if (status != cudaSuccess)
    throw DeviceError(std::string("CUDA: a sort gave \"") + cudaGetErrorString(status) + '"', Location{});
}

template <class Key>
Keyed<Key> sort(Keyed<Key> given, Keyed<Key> other, std::int64_t count, int bits) {
  if (count < 2 || bits < 1) return given;
  cub::DoubleBuffer<Key> keys(given.keys, other.keys);
  cub::DoubleBuffer<std::uint32_t> numbers(given.numbers, other.numbers);
  std::size_t bytes = 0;
  auto sort = [&](void* workspace) {
    // 32 bits, so that no kernels are compiled for counts of 64 bits.
    auto items = static_cast<std::uint32_t>(count);
    check(cub::DeviceRadixSort::SortPairs(workspace, bytes, keys, numbers, items, 0, bits, current_stream()));
  };
  sort(nullptr);
  Scratch workspace(bytes > 0 ? bytes : 1);
  sort(workspace.as<void>());
  return {keys.Current(), numbers.Current()};
}

}  // namespace

Keyed<std::uint32_t> sort_pairs(Keyed<std::uint32_t> given, Keyed<std::uint32_t> other, std::int64_t count, int bits) {
  return sort(given, other, count, bits);
}

Keyed<std::uint64_t> sort_pairs(Keyed<std::uint64_t> given, Keyed<std::uint64_t> other, std::int64_t count, int bits) {
  return sort(given, other, count, bits);
}

}  // namespace reel::detail::inline REEL_TARGET
