#pragma once

#include <algorithm>
#include <cstdint>

#include <reel/dtype.h>

namespace reel::detail {

/// A matrix in a layout that oneDNN accepts: contiguous rows or columns with a leading dimension that avoids overlap.
template <class T>
struct PackedMatrix {
  const T* data;
  std::int64_t rows, columns, row_stride, column_stride;

  bool row_major() const { return (column_stride == 1 || columns == 1) && (row_stride >= columns || rows == 1); }
  bool column_major() const { return (row_stride == 1 || rows == 1) && (column_stride >= rows || columns == 1); }
  bool is_readable() const { return row_major() || column_major(); }
  /// The leading dimension. A single row's stride is arbitrary, but oneDNN requires a valid one.
  std::int64_t step() const { return row_major() ? std::max(row_stride, columns) : std::max(column_stride, rows); }
};

/// Returns true if oneDNN can multiply here, with bf16 instructions; otherwise none of its products may be called.
bool can_multiply_bf16();
/// Returns true if the processor has instructions that multiply tiles of bf16 (AMX).
bool has_bf16_tiles();

// `c_stride` is the leading dimension of c. Rows and columns may be computed in any groups of at least 64: each element's
// bits are equal.

/// c = a b, on the calling thread.
void multiply(float* c, std::int64_t c_stride, const PackedMatrix<BFloat16>& a, const PackedMatrix<BFloat16>& b);
/// c = a b with f32 sums, on the calling thread, by a kernel that is generated for these sizes at their first use. Rows
/// are contiguous: with gaps, oneDNN 2.6 uses a loop that is hundreds of times slower. `packed_b`: b in strips of 64
/// columns; in each, the elements of two rows are interleaved. `depth` is a multiple of 32.
void multiply_vnni(BFloat16* c, const BFloat16* a, const BFloat16* packed_b, std::int64_t rows, std::int64_t columns,
                   std::int64_t depth);

}  // namespace reel::detail
