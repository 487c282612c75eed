#pragma once

#include <cstdint>

namespace reel {

/// Where the channels of a tensor are: behind the examples, (N, C, d…), or last, (N, d…, C), with one, two or three
/// spatial axes.
enum class Layout : std::uint8_t { nchw, nhwc };

}  // namespace reel
