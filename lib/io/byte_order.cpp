#include "byte_order.h"

#include <algorithm>

namespace reel::io {

void swap_bytes(std::span<std::byte> bytes, std::size_t size) {
  for (std::size_t i = 0; i + size <= bytes.size(); i += size) std::reverse(&bytes[i], &bytes[i] + size);
}

void make_truth_values(std::span<std::byte> bytes) {
  for (std::byte& byte : bytes) byte = std::byte{byte != std::byte{0}};
}

}  // namespace reel::io
