#pragma once

#include <cstddef>

#include <reel/shape.h>
#include <reel/tensor.h>

namespace reel::detail {

/// Memory that was not allocated by the library, such as a mapped file or another library's array, and how to release
/// it. `release` must not throw; the thread that drops the last tensor over the memory calls it, once.
struct ForeignMemory {
  void* data = nullptr;   ///< any address of the memory, to compare storages by
  std::size_t bytes = 0;  ///< for memory statistics
  Device device = cpu;
  void* owner = nullptr;  ///< the argument of `release`
  void (*release)(void* owner) = nullptr;
};

/// A tensor over foreign memory: its first element is at `first`, which must be aligned to the size of an element; the
/// strides are counted in elements. If this throws, the memory is not released.
/// Throws: MemoryError in the name of `op`.
Tensor adopt_memory(const ForeignMemory& memory, void* first, const Shape& shape, const Shape& strides, DType dtype,
                    const char* op, Location where);

}  // namespace reel::detail
