#pragma once

#include <cstdint>

#include <reel/tensor.h>

namespace reel {

/// How the numbers between those of a grid are found. Linear is bilinear in two and trilinear in three dimensions.
enum class Interpolation : std::uint8_t { nearest, linear, cubic, area };

struct InterpolateOptions {
  /// The new sizes of the axes behind the second. Empty: `scale` says.
  Shape size = {};
  /// Above 0. New sizes are ⌊size · scale⌋, and coordinates are counted with this scale, not with that of the sizes.
  double scale = 0;
  Interpolation mode = Interpolation::nearest;
  /// The corners' centres lie on each other, not the corners: for linear and cubic.
  bool align_corners = false;
};

/// x (N, C, d…) with 1 to 3 spatial axes brought to other sizes, axis by axis: new element o is at ⌊o s⌋ (nearest), or at
/// (o + 1/2) s − 1/2, not below 0 if linear, between its 2 (linear) or 4 (cubic, Keys's with a = −3/4) neighbours, where s
/// is old size / new size; at o (old − 1) / (new − 1) if corners are aligned; or the mean from ⌊o s⌋ to ⌈(o + 1) s⌉ (area).
/// Beyond the ends the last element counts again. Halves are rounded once.
/// Throws: ShapeError; DTypeError unless floating; Error for options that do not fit.
/// Source: PyTorch's interpolate.
Tensor interpolate(const Arg& x, const InterpolateOptions& options);

}  // namespace reel
