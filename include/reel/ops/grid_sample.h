#pragma once

#include <cstdint>

#include <reel/interpolation.h>
#include <reel/tensor.h>

namespace reel {

/// Options of `affine_grid`.
struct AffineGridOptions {
  /// Whether −1 and 1 are the centres of the corner pixels, instead of the corners of the image. Default false.
  bool align_corners = false;
};

/// The points of a regular grid over [−1, 1]² or [−1, 1]³ under affine maps: theta (N, 2, 3) and size (H, W) give (N, H,
/// W, 2), theta (N, 3, 4) and size (D, H, W) give (N, D, H, W, 3); points are (x, y) or (x, y, z), with x along W:
/// y_n,p = theta_n (p, 1).
/// Throws: ShapeError unless theta and size fit and no size is negative; DTypeError unless theta is floating.
/// Source: Jaderberg et al., Spatial transformer networks (NeurIPS 2015); PyTorch's affine_grid.
Tensor affine_grid(const Arg& theta, const Shape& size, AffineGridOptions options = {});

/// The values that `grid_sample` reads beyond the ends of x.
enum class GridPadding : std::uint8_t {
  zeros,       ///< 0
  border,      ///< the nearest pixel
  reflection,  ///< the pixel at the mirrored point
};

/// Options of `grid_sample`.
struct GridSampleOptions {
  /// Interpolation::linear (default) of the 4 or 8 neighbours, or Interpolation::nearest.
  Interpolation mode = Interpolation::linear;
  /// The values read beyond the ends of x; default zeros.
  GridPadding padding = GridPadding::zeros;
  /// Whether −1 and 1 are the centres of the corner pixels, instead of the corners of the image. Default false.
  bool align_corners = false;
};

/// x at the points of a grid: x (N, C, H, W) and grid (N, h, w, 2) give (N, C, h, w), x (N, C, D, H, W) and grid (N, d,
/// h, w, 3) give (N, C, d, h, w). Points are (x, y) or (x, y, z) with x along W, and [−1, 1] spans the image; NaN is
/// read as −1. The grid has a gradient with linear interpolation only. bf16 and f16 are rounded once.
/// Throws: ShapeError unless x and grid fit, and for an empty image; DTypeError unless both have one floating dtype;
/// DeviceError for operands on different devices; Error for another interpolation.
/// Source: Jaderberg et al., Spatial transformer networks (NeurIPS 2015); PyTorch's grid_sample.
Tensor grid_sample(const Arg& x, const Arg& grid, GridSampleOptions options = {});

}  // namespace reel
