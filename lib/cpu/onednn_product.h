#pragma once

#include <algorithm>
#include <cstdint>

#include <reel/dtype.h>

namespace reel::detail {

/// A matrix as oneDNN reads it: rows or columns without gaps, the other way far enough apart not to overlap.
template <class T>
struct PackedMatrix {
  const T* data;
  std::int64_t rows, columns, row_step, column_step;

  bool row_major() const { return (column_step == 1 || columns == 1) && (row_step >= columns || rows == 1); }
  bool column_major() const { return (row_step == 1 || rows == 1) && (column_step >= rows || columns == 1); }
  bool is_readable() const { return row_major() || column_major(); }
  /// The distance between rows, or columns; one row's may be anything, but oneDNN wants it to fit.
  std::int64_t step() const { return row_major() ? std::max(row_step, columns) : std::max(column_step, rows); }
};

/// Whether the processor multiplies bf16.
bool can_multiply_bf16();
/// … and whole tiles of it at once.
bool has_bf16_tiles();

// Rows of c lie `c_step` apart. Rows and columns may be worked out in any groups of at least 64: each element's bits are
// the same.

/// c = or += a b in f32 on all of OpenMP's threads, which it waits for. The numbers of rows and columns must be large
/// (see matmul.cpp): of few, oneDNN would share out the sums, and each number of threads would give other bits.
void multiply_large(float* c, std::int64_t c_step, const PackedMatrix<float>& a, const PackedMatrix<float>& b,
                    bool adds);

/// c = a b, on the calling thread.
void multiply(float* c, std::int64_t c_step, const PackedMatrix<BFloat16>& a, const PackedMatrix<BFloat16>& b);
/// c = a b with f32 sums, on the calling thread, by a kernel that is made for these sizes when they are first met. Rows
/// have no gaps: with gaps, oneDNN 2.6 takes a loop that is hundreds of times as slow. `pairs`: b in strips of 64 columns;
/// in each, two rows' elements side by side. `depth` is a multiple of 32.
void multiply_pairs(BFloat16* c, const BFloat16* a, const BFloat16* pairs, std::int64_t rows, std::int64_t columns,
                    std::int64_t depth);

}  // namespace reel::detail
