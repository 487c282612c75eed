#include <algorithm>
#include <vector>

#include "../../core/dtype_dispatch.h"
#include "../../core/halves.h"
#include "../../core/threads/parallel.h"
#include "../cpu_kernels.h"
#include "unfold.h"

namespace reel::detail {
namespace {

// The first patch whose element at `offset` is at or behind 0, and the first one beyond the end.
struct Inside {
  std::int64_t begin, end;

  Inside(std::int64_t offset, std::int64_t stride, std::int64_t size, std::int64_t patches) {
    begin = offset < 0 ? (-offset + stride - 1) / stride : 0;
    end = offset < size ? (size - 1 - offset) / stride + 1 : 0;
    begin = begin < patches ? begin : patches;
    end = end < begin ? begin : end < patches ? end : patches;
  }
};

// Calls f(row of the image, row of the patches' columns, index of the first element there, first inside, last inside,
// its column) for each row of elements of one plane's patches; a row outside the image is -1.
template <class F>
void for_each_patch_row(const PatchGrid& g, F f) {
  std::int64_t place = 0;
  for (std::int64_t i = 0; i < g.kernel_rows; ++i)
    for (std::int64_t j = 0; j < g.kernel_columns; ++j) {
      std::int64_t left = j * g.column_dilation - g.column_padding;
      Inside columns(left, g.column_stride, g.width, g.columns);
      for (std::int64_t row = 0; row < g.rows; ++row, place += g.columns) {
        std::int64_t y = row * g.row_stride + i * g.row_dilation - g.row_padding;
        f(y >= 0 && y < g.height ? y : -1, place, columns, left);
      }
    }
}

std::int64_t patch_elements(const PatchGrid& g) { return g.kernel_rows * g.kernel_columns * g.rows * g.columns; }

void unfold(const View& out, const View& x, const PatchGrid& g) {
  std::int64_t plane = g.height * g.width, patches = patch_elements(g);
  if (out.numel == 0) return;
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) {
    std::int64_t grain = parallel_grain / patches;
    parallel_for(out.numel / patches, grain > 0 ? grain : 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) {
        const T* from = x.as<T>() + p * plane;
        for_each_patch_row(g, [&](std::int64_t y, std::int64_t place, Inside columns, std::int64_t left) {
          T* to = out.as<T>() + p * patches + place;
          if (y < 0) columns.begin = columns.end = g.columns;
          const T* row = from + y * g.width + left;
          std::int64_t c = 0;
          for (; c < columns.begin; ++c) to[c] = 0;
          for (; c < columns.end; ++c) to[c] = row[c * g.column_stride];
          for (; c < g.columns; ++c) to[c] = 0;
        });
      }
    });
  });
}

// Threads divide the planes; halves are summed in f32.
void fold(const View& out, const View& patches, const PatchGrid& g) {
  std::int64_t plane = g.height * g.width, elements = patch_elements(g);
  if (out.numel == 0) return;
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    std::int64_t grain = parallel_grain / (elements + plane);
    parallel_for(out.numel / plane, grain > 0 ? grain : 1, [&](std::int64_t begin, std::int64_t end) {
      std::vector<Wide<T>> sums(static_cast<std::size_t>(plane));
      for (std::int64_t p = begin; p < end; ++p) {
        std::fill(sums.begin(), sums.end(), Wide<T>(0));
        for_each_patch_row(g, [&](std::int64_t y, std::int64_t place, Inside columns, std::int64_t left) {
          if (y < 0) return;
          const T* from = patches.as<T>() + p * elements + place;
          Wide<T>* row = sums.data() + y * g.width;
          for (std::int64_t c = columns.begin; c < columns.end; ++c)
            row[left + c * g.column_stride] += static_cast<Wide<T>>(from[c]);
        });
        T* to = out.as<T>() + p * plane;
        for (std::int64_t i = 0; i < plane; ++i) to[i] = static_cast<T>(sums[static_cast<std::size_t>(i)]);
      }
    });
  });
}

}  // namespace

void fill_unfold(ResampleKernels& table) {
  table.unfold = unfold;
  table.fold = fold;
}

}  // namespace reel::detail
