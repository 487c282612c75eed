#pragma once

#include <cstddef>
#include <cstdint>

#include "../lib/core/target.h"
#include "faults.h"

struct CUstream_st;

// What kernels ask of the runtime. Nothing here needs CUDA's headers.

namespace reel::detail {
inline namespace REEL_TARGET {

using Stream = CUstream_st*;

/// The device that this thread's kernels run on, and where its stream's work is queued.
int current_device();
Stream current_stream();
int multiprocessors();

/// Memory of the current device for kernels that are queued before its owner ends.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_;
  void* block_;
};

/// All are queued. What is copied from the CPU may be overwritten as soon as `copy_to_device` returns.
void copy_to_device(void* to, const void* from, std::size_t bytes);
void copy_on_device(void* to, const void* from, std::size_t bytes);
void fill_with_zeros(void* to, std::size_t bytes);

/// Waits for the stream. `reason` is what a warning says about it: "the number of elements that are not 0".
void copy_to_host(void* to, const void* from, std::size_t bytes, const char* reason);

template <class T>
T read_from_device(const T* place, const char* reason) {
  T value;
  copy_to_host(&value, place, sizeof(T), reason);
  return value;
}

/// Throws: DeviceError where the last launch was refused.
void check_launch();

}  // namespace REEL_TARGET
}  // namespace reel::detail
