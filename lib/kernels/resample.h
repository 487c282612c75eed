#pragma once

#include "../core/op.h"
#include "kernel_table.h"

namespace reel::detail {

/// Element o of the resampled axis is Σ weight · input element over some taps; see Interpolation.
struct AxisTaps {
  std::int64_t axis, mode, old_size, new_size, align_corners;
  /// Input elements per output element.
  FloatBits step;
};

/// Patches of an image; see UnfoldOptions.
struct PatchGrid {
  std::int64_t height, width;                // of the image
  std::int64_t kernel_rows, kernel_columns;  // of a patch
  std::int64_t rows, columns;                // the number of patches
  std::int64_t row_dilation, column_dilation, row_padding, column_padding, row_stride, column_stride;
};

/// All views are contiguous. Resampling takes f32 and f64 only.
struct ResampleKernels {
  /// Resamples along an axis, which has different sizes in `out` and x.
  void (*resample)(const View& out, const View& x, const AxisTaps& taps);
  /// The transpose of `resample`: `out` has the input's size.
  void (*resample_transposed)(const View& out, const View& d, const AxisTaps& taps);
  /// (N, C, H, W) → (N, C kh kw, L), and the reverse with overlaps summed.
  void (*unfold)(const View& out, const View& x, const PatchGrid& grid);
  void (*fold)(const View& out, const View& patches, const PatchGrid& grid);
};

}  // namespace reel::detail
