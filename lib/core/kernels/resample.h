#pragma once

#include "../invoke.h"
#include "../kernel_table.h"

namespace reel::detail {

/// New element o of an axis is Σ weight · old element over some taps; see Interpolation.
struct AxisTaps {
  std::int64_t axis, mode, old_size, new_size, align_corners;
  /// Old elements per new one.
  FloatBits step;
};

/// Patches of an image; see UnfoldOptions.
struct PatchGrid {
  std::int64_t height, width;                // of the image
  std::int64_t kernel_rows, kernel_columns;  // of a patch
  std::int64_t rows, columns;                // how many patches there are
  std::int64_t row_dilation, column_dilation, row_padding, column_padding, row_stride, column_stride;
};

/// All are contiguous. f32 and f64 only for the axes.
struct ResampleKernels {
  /// Along an axis, of one size in `out` and another in x.
  void (*resample)(const View& out, const View& x, const AxisTaps& taps);
  /// Its transpose: `out` has the old size.
  void (*resample_transposed)(const View& out, const View& d, const AxisTaps& taps);
  /// (N, C, H, W) → (N, C kh kw, L) and back.
  void (*unfold)(const View& out, const View& x, const PatchGrid& grid);
  void (*fold)(const View& out, const View& patches, const PatchGrid& grid);
};

}  // namespace reel::detail
