#pragma once

#include <cstdint>

namespace reel {

/// Where the channels of a batch stand: second, (N, C, L), (N, C, H, W) or (N, C, D, H, W), or last, (N, L, C),
/// (N, H, W, C) or (N, D, H, W, C).
enum class Layout : std::uint8_t { nchw, nhwc };

}  // namespace reel
