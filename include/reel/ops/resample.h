#pragma once

#include <reel/interpolation.h>
#include <reel/tensor.h>

namespace reel {

/// Options of `interpolate`.
struct InterpolateOptions {
  /// The new sizes of the axes behind the second. Empty (default): computed from `scale`.
  Shape size = {};
  /// Above 0 where no size is given: new sizes are ⌊size · scale⌋, and coordinates are computed with this scale, not
  /// with that of the sizes. Default 0: `size` is given.
  double scale = 0;
  /// Default Interpolation::nearest.
  Interpolation mode = Interpolation::nearest;
  /// Whether the centres of the corner elements coincide, instead of the corners of the grids; for linear and cubic.
  /// Default false.
  bool align_corners = false;
};

/// Resizes the 1 to 3 spatial axes of x: (N, C, d…) → (N, C, size…), axis by axis. New element o is at ⌊o s⌋ (nearest),
/// or at (o + 1/2) s − 1/2, not below 0 if linear, between its 2 (linear) or 4 (cubic, Keys's with a = −3/4)
/// neighbours, where s is old size / new size; at o (old − 1) / (new − 1) if corners are aligned; or the mean from ⌊o
/// s⌋ to ⌈(o + 1) s⌉ (area). Beyond the ends the last element is repeated. bf16 and f16 are rounded once.
/// Throws: ShapeError for another rank or sizes that do not fit; DTypeError unless floating; Error for options that
/// contradict each other.
/// Source: PyTorch's interpolate.
Tensor interpolate(const Arg& x, const InterpolateOptions& options);

}  // namespace reel
