#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <reel/tensor.h>

#include "../core/context.h"

namespace reel::io {

/// The size of a tensor's elements in bytes.
inline std::size_t byte_count(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype());
}

/// The elements of a contiguous tensor on the CPU.
inline std::span<const std::byte> elements_of(const Tensor& packed) {
  detail::wait_for(packed, {});
  return {static_cast<const std::byte*>(packed.body().data), byte_count(packed)};
}

/// The elements of a contiguous tensor on the CPU, to be filled.
inline std::span<std::byte> new_elements_of(const Tensor& packed) {
  return {static_cast<std::byte*>(packed.body().data), byte_count(packed)};
}

/// Replaces bytes other than 0 by 1: other values of a C++ bool are undefined.
inline void make_bools(std::span<std::byte> bytes) {
  for (std::byte& byte : bytes) byte = std::byte{byte != std::byte{0}};
}

/// Reverses the bytes of each element of `size` bytes.
inline void swap_bytes(std::span<std::byte> bytes, std::size_t size) {
  for (std::size_t i = 0; i + size <= bytes.size(); i += size) std::reverse(&bytes[i], &bytes[i] + size);
}

}  // namespace reel::io
