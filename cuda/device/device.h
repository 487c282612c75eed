#pragma once

#include <cstddef>
#include <cstdint>

#include <reel/detail/immovable.h>

#include "../../lib/core/target.h"
#include "../runtime/faults.h"

struct CUstream_st;

// The runtime's functions for kernels. This header needs none of CUDA's.

namespace reel::detail::inline REEL_TARGET {

using Stream = CUstream_st*;

/// The device on which this thread's kernels run, and the stream on which their work is queued.
int current_device();
Stream current_stream();
int multiprocessors();

/// Memory of the current device for kernels that are queued before this object is destroyed.
class Scratch : Immovable {
 public:
  explicit Scratch(std::size_t bytes);
  ~Scratch();
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_;
  void* block_;
};

/// Copies are queued. `from` on the CPU may be overwritten as soon as `copy_to_device` returns.
void copy_to_device(void* to, const void* from, std::size_t bytes);
void copy_on_device(void* to, const void* from, std::size_t bytes);
void fill_with_zeros(void* to, std::size_t bytes);

/// Copies to the CPU and waits for the stream. `reason` explains the wait in warnings: "the number of elements that are
/// not 0".
void copy_to_host(void* to, const void* from, std::size_t bytes, const char* reason);

template <class T>
T read_from_device(const T* place, const char* reason) {
  T value;
  copy_to_host(&value, place, sizeof(T), reason);
  return value;
}

/// Throws: DeviceError if the last launch was refused.
void check_launch();

}  // namespace reel::detail::inline REEL_TARGET
