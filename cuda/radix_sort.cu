#include "radix_sort.h"

#include <cub/device/device_radix_sort.cuh>

#include <reel/error.h>

#include "device.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

template <class Key>
int sort(const SortBuffers<Key>& buffers, std::int64_t count, int bits) {
  cub::DoubleBuffer<Key> keys(buffers.keys[0], buffers.keys[1]);
  cub::DoubleBuffer<std::uint32_t> numbers(buffers.numbers[0], buffers.numbers[1]);
  // 32-bit counts, and so the kernels for them alone.
  auto run = [&](void* space, std::size_t& bytes) {
    cudaError_t status = cub::DeviceRadixSort::SortPairs(space, bytes, keys, numbers, static_cast<std::uint32_t>(count),
                                                         0, bits, current_stream());
    if (status != cudaSuccess)
      throw DeviceError(std::string("CUDA: cub::DeviceRadixSort gave \"") + cudaGetErrorString(status) + '"', {});
  };
  std::size_t bytes = 0;
  run(nullptr, bytes);
  Scratch scratch(bytes > 0 ? bytes : 1);  // no memory at all is asked how much it takes
  run(scratch.as<void>(), bytes);
  return keys.selector;
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
