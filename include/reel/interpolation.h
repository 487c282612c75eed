#pragma once

#include <cstdint>

namespace reel {

/// How `interpolate` computes the elements between those of a grid. Linear is bilinear in two and trilinear in three
/// dimensions.
enum class Interpolation : std::uint8_t { nearest, linear, cubic, area };

}  // namespace reel
