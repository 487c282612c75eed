#include "sort_pairs.h"

#include <cub/device/device_radix_sort.cuh>

#include <reel/error.h>

#include "device.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

void check(cudaError_t status) {
  if (status != cudaSuccess)
    throw DeviceError(std::string("CUDA: a sort gave \"") + cudaGetErrorString(status) + '"', Location{});
}

}  // namespace

KeyedNumbers sort_pairs(KeyedNumbers given, KeyedNumbers other, std::int64_t count, int bits) {
  if (count < 2 || bits < 1) return given;
  cub::DoubleBuffer<std::uint64_t> keys(given.keys, other.keys);
  cub::DoubleBuffer<std::uint32_t> numbers(given.numbers, other.numbers);
  std::size_t bytes = 0;
  auto sort = [&](void* workspace) {
    check(cub::DeviceRadixSort::SortPairs(workspace, bytes, keys, numbers, count, 0, bits, current_stream()));
  };
  sort(nullptr);
  Scratch workspace(bytes > 0 ? bytes : 1);
  sort(workspace.as<void>());
  return {keys.Current(), numbers.Current()};
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
