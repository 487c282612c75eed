#pragma once

#include <cstddef>
#include <span>

namespace reel::io {

/// Reverses the bytes of each element of `size` bytes: 1, 2, 4 or 8.
void swap_bytes(std::span<std::byte> bytes, std::size_t size);

/// Makes every byte but 0 a 1, because C++ bools other than 0 and 1 are undefined.
void make_truth_values(std::span<std::byte> bytes);

}  // namespace reel::io
