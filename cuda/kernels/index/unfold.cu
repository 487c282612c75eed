#include <type_traits>

#include "../../../lib/core/dtype_dispatch.h"
#include "../../device/element.h"
#include "../../device/launch.h"
#include "../../device/split.h"
#include "../../runtime/cuda_kernels.h"
#include "unfold.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

template <class T>
struct Unfold {
  PatchGrid g;
  Split columns, rows, kernel_columns, kernel_rows;
  T* out;
  const T* x;

  REEL_DEVICE void operator()(std::int64_t i) const {
    auto column = columns(i), row = rows(column.whole), across = kernel_columns(row.whole),
         down = kernel_rows(across.whole);
    std::int64_t left = column.rest * g.column_stride + across.rest * g.column_dilation - g.column_padding;
    std::int64_t top = row.rest * g.row_stride + down.rest * g.row_dilation - g.row_padding;
    bool inside = left >= 0 && left < g.width && top >= 0 && top < g.height;
    out[i] = inside ? x[(down.whole * g.height + top) * g.width + left] : T(0);
  }
};

// Each element sums its own occurrences in the patches, in the order of its possible positions in them.
template <class T>
struct Fold {
  PatchGrid g;
  Split width, height;
  T* out;
  const T* patches;

  REEL_DEVICE void operator()(std::int64_t i) const {
    auto column = width(i), row = height(column.whole);
    std::int64_t patch_count = g.rows * g.columns;
    const T* from = patches + row.whole * g.kernel_rows * g.kernel_columns * patch_count;
    Wide<T> sum = 0;
    for (std::int64_t a = 0; a < g.kernel_rows; ++a) {
      std::int64_t top = row.rest + g.row_padding - a * g.row_dilation, patch_row = top / g.row_stride;
      if (top < 0 || top % g.row_stride != 0 || patch_row >= g.rows) continue;
      for (std::int64_t b = 0; b < g.kernel_columns; ++b) {
        std::int64_t left = column.rest + g.column_padding - b * g.column_dilation, patch = left / g.column_stride;
        if (left < 0 || left % g.column_stride != 0 || patch >= g.columns) continue;
        sum += loaded(from[(a * g.kernel_columns + b) * patch_count + patch_row * g.columns + patch]);
      }
    }
    out[i] = stored<T>(sum);
  }
};

void unfold(const View& out, const View& x, const PatchGrid& g) {
  auto split = [&](std::int64_t divisor) { return Split(divisor, out.numel); };
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_each(out.numel, Unfold<T>{g, split(g.columns), split(g.rows), split(g.kernel_columns), split(g.kernel_rows),
                                  out.as<T>(), x.as<const T>()});
  });
}

void fold(const View& out, const View& patches, const PatchGrid& g) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_each(out.numel,
             Fold<T>{g, Split(g.width, out.numel), Split(g.height, out.numel), out.as<T>(), patches.as<const T>()});
  });
}

}  // namespace

void fill_unfold(ResampleKernels& table) {
  table.unfold = unfold;
  table.fold = fold;
}

}  // namespace reel::detail::inline REEL_TARGET
