#pragma once

#include <cstdint>

#include <reel/dtype.h>

namespace reel::detail {

/// A tensor as kernels see it. Strides are in elements.
struct View {
  void* data;
  const std::int64_t* dims;
  const std::int64_t* strides;
  std::int64_t numel;
  int rank;
  DType dtype;
  bool contiguous;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

}  // namespace reel::detail
