#pragma once

#include <cstdint>

namespace reel::detail {

/// The most elements of a tensor: more than any memory holds, and few enough that their bytes can be counted.
constexpr std::int64_t most_elements = std::int64_t{1} << 44;

}  // namespace reel::detail
